"""Month names of some forty languages, case-folded, without dots. Data; made from Unicode CLDR's names."""

from __future__ import annotations

#: One line of words per month, January first.
_NAMES: tuple[str, ...] = (
    "jan january januar jänner janv janvier ene enero gen gennaio janeiro januari tammi tammik tammikuu "
    "tammikuuta tammikuussa sty styczeń stycznia styczen styczniu led leden ledna lednu január januára ian "
    "ianuarie янв январь января січ січень січня сту студзень студзеня стд яну януари ян ιαν ιανουάριοσ "
    "ιανουαρίου oca ocak djan djanuari يناير ژانویه ژانویهٔ جنوری ינואר לינואר בינואר ינו जनवरी জানু জানুয়ারী "
    "জানুয়ারি janar sij siječanj siječnja siječnju siječnjem јан јануар gener januarie հնվ հունվար հունվարի "
    "มกราคม มค เดือนมกราคม มกรา saus sausio sausis janvāris jaan jaanuar janúar urt urtarrila xan xaneiro ஜன "
    "ஜனவரி జన జనవరి जाने जानेवारी jän",
    "feb february februar feber févr février fév febrero febbraio fev fevereiro februari helmi helmik helmikuu "
    "helmikuuta helmikuussa lut lutego luty lutym úno únor února únr únoru február februára febr februarie "
    "февр февраль февраля фев лют лютий лютого лютага люты февруари фв φεβ φεβρουάριοσ φεβρουαρίου şub şubat "
    "şu peb pebruari فبراير شباط فوریه فوریهٔ فبروری פברואר בפברואר לפברואר פבר फ़रवरी ফেব ফেব্রুয়ারী ফেব্রুয়ারি "
    "shk shkurt velj veljača veljače veljači veljačom феб фебруар febrer փետրվար փետրվարի փտվ กพ กุมภาพันธ์ "
    "เดือนกุมภาพันธ์ กุมภา vas vasario vasaris februāris veebr veebruar febrúar ots otsaila febreiro பிப் "
    "பிப்ரவரி ఫిబ్ర ఫిబ్రవరి फेब्रु फेब्रुवारी فروری",
    "mar march mär märz mrz mars marzo março maart mrt marts maalis maalisk maaliskuu maaliskuuta maaliskuussa "
    "marca marzec marcu bře březen března březnu marec márc március már martie mart мар март марта бер "
    "березень березня берез сак сакавік сакавіка μάρ μάρτιοσ μαρ μαρτίου maret mac مارس مارچ آذار اذار מרץ במרץ למרץ מרס "
    "במרס למרס מארס במארס למארס मार्च মার্চ ožu ožujak ožujka ožujku ožujkom març մարտ մարտի մրտ มีค มีนาคม "
    "เดือนมีนาคม มีนา kov kovas kovo märts martxoa மார் மார்ச் మార్చి maerz uMashi",
    "apr april avr avril abr abril aprile huhti huhtik huhtikuu huhtikuuta huhtikuussa kwi kwiecień kwietnia "
    "kwiecien kwietniu kwie dub duben dubna dubnu apríl apríla ápr április aprilie апр апрель апреля квіт "
    "квітень квітня кві кра красавік красавіка крс април ап απρ απρίλιοσ απριλίου nis nisan أبريل نيسان ابريل آوریل اپریل "
    "אפריל באפריל לאפריל אפר अप्रैल এপ্রি এপ্রিল pri prill tra travanj travnja travnju travnjem ապր ապրիլ "
    "ապրիլի เมย เมษายน เมษา เดือนเมษายน bal balandis balandžio aprīlis aprill api apirila ஏப் ஏப்ரல் ఏప్రి "
    "ఏప్రిల్ एप्रि एप्रिल",
    "may mai mayo mag maggio maio mei maj touko toukok toukokuu toukokuuta toukokuussa maja maju kvě květen "
    "května květnu máj mája május май мая трав травень травня тра траўня μάι μάιοσ μαΐ μαΐου mayıs مايو أيار ايار مه "
    "مهٔ می מאי במאי למאי मई মে svi svibanj svibnja svibnju svibnjem мај maig մայիս մայիսի մյս พค พฤษภาคม "
    "เดือนพฤษภาคม พฤษภา geg gegužė gegužės maijs maí maiatza மே మే मे مئی",
    "jun june juni juin junio giu giugno junho kesä kesäk kesäkuu kesäkuuta kesäkuussa cze czerwca czerwiec "
    "czerwcu červen června čvn čer červnu jún júna június iun iunie июн июнь июня черв червень червня чер чэр "
    "чэрвень чэрвеня юни юн ιουν ιουνίου ιούν ιούνιοσ haz haziran djuni يونيو حزيران يونيه يونية ژوئن جون יוני ביוני "
    "ליוני יונ जून জুন qer qershor lipanj lipnja lipnju lipnjem јун junij juny junie հնս հունիս հունիսի "
    "มิถุนายน มิย เดือนมิถุนายน มิถุนา birž birželio birželis jūn jūnijs juuni júní eka ekaina xuño ஜூன் జూన్",
    "jul july juli juil juillet julio lug luglio julho heinä heinäk heinäkuu heinäkuuta heinäkuussa lip lipca "
    "lipiec lipcu července červenec čvc črc červenci črv júl júla július iul iulie июл июль июля лип липень "
    "липня ліп ліпень ліпеня юли юл ιουλ ιουλίου ιούλ ιούλιοσ tem temmuz djuli julai يوليو تموز يوليه يولية ژوئیه "
    "ژوئیهٔ جولای יולי ביולי ליולי יול जुलाई জুল জুলাই korr korrik kor srpanj srpnja srpnju srpnjem јул julij "
    "juliol julie հլս հուլիս հուլիսի กค กรกฎาคม เดือนกรกฏาคม กรกฎา liep liepa liepos jūl jūlijs juuli júlí uzt "
    "uztaila xul xullo ஜூலை జులై जुलै جولائی",
    "aug august août aoû ago agosto augustus augusti elo elok elokuu elokuuta elokuussa sie sierpień sierpnia "
    "sierpien sierpniu srp srpen srpna srpnu augusta augusztus авг август августа серп серпень серпня сер жні "
    "жнівень жніўня жнівеня жнв αυγ αυγούστου αύγ αύγουστοσ ağu ağustos ağ agu agustus agt ogo ogos أغسطس اغسطس اوت "
    "آگست אוגוסט באוגוסט לאוגוסט אוג अगस्त আগ আগস্ট gush gusht gsh kol kolovoz kolovoza kolovozu kolovozom avg "
    "avgust agost օգոստոս օգոստոսի օգս สค สิงหาคม สิงหา เดือนสิงหาคม rugp rugpjūtis rugpjūčio augusts ágú "
    "ágúst abu abuztua ஆக ஆகஸ்ட் ఆగ ఆగస్టు ऑग ऑगस्ट اگست",
    "sep september sept septembre septiembre setiembre set settembre setembro septembro syys syysk syyskuu "
    "syyskuuta syyskuussa wrz wrzesień września wrzesien wrzesnia wrześniu wrzesniu zář září septembra szept "
    "szeptember septembrie сент сентябрь сентября сен вер вересень вересня верес верасень верасня врс сеп "
    "септември септ септм σεπ σεπτέμβριοσ σεπτεμβρίου eyl eylül سبتمبر أيلول ايلول سپتامبر سپتمبر ספטמבר בספטמבר לספטמבר "
    "ספט सितंबर सितम्बर সেপ সেপ্টেম্বর sht shtator ruj rujan rujna rujnu rujnom септембар setembre սեպ "
    "սեպտեմբեր սեպտեմբերի กย กันยายน กันยา เดือนกันยายน rugs rugsėjis rugsėjo septembris ira iraila செப் "
    "செப்டம்பர் సెప్టెం సెప్టెంబర్ सप्टें सप्टेंबर ستمبر",
    "oct october okt oktober octobre octubre ott ottobre out outubro loka lokak lokakuu lokakuuta lokakuussa "
    "paź październik października pazdziernik pazdziernika październiku pazdzierniku paz říj říjen října říjnu "
    "október októbra octombrie окт октябрь октября жовт жовтень жовтня жов кас кастрычнік кастрычніка кст "
    "октомври οκτ οκτωβρίου οκτώβριοσ eki ekim أكتوبر اكتوبر اکتبر اکتوبر אוקטובר באוקטובר לאוקטובר אוק अक्तूबर "
    "अक्टूबर অক্টো অক্টোবর tet tetor listopadom октобар հոկ հոկտեմբեր հոկտեմբերի ตค ตุลาคม เดือนตุลาคม ตุลา "
    "spal spalio spalis oktobris oktoober urr urria அக் அக்டோபர் అక్టో అక్టోబర్ ऑक्टो ऑक्टोबर",
    "nov november novembre noviembre novembro marras marrask marraskuu marraskuuta marraskuussa lis listopad "
    "listopada listopadzie listopadu novembra noiembrie noiem нояб ноябрь ноября ноя лист листопад листопада "
    "листоп лис ліс лістапад лістапада ное ноември νοέ νοέμβριοσ νοε νοεμβρίου kas kasım nop nopember نوفمبر "
    "نوامبر نومبر נובמבר בנובמבר לנובמבר נוב नवंबर नवम्बर নভে নভেম্বর nën nëntor stu studeni studenoga "
    "studenom studenomu studenome studenog studenim нов новембар նոյ նոյեմբեր նոյեմբերի พย พฤศจิกายน "
    "เดือนพฤศจิกายน พฤศจิ lapkr lapkritis lapkričio novembris nóv nóvember aza azaroa நவ நவம்பர் నవం నవంబర్ "
    "नोव्हें नोव्हेंबर",
    "dec december dez dezember déc décembre dic diciembre dicembre dezembro des desember joulu jouluk joulukuu "
    "joulukuuta joulukuussa gru grudnia grudzień grudzien grudniu pro prosince prosinec prosinci decembra "
    "decembrie дек декабрь декабря груд грудень грудня гру сне снежань снежня снж декември δεκ δεκέμβριοσ "
    "δεκεμβρίου ara aralık dis disember ديسمبر دسامبر دسمبر דצמבר בדצמבר לדצמבר דצמ दिसंबर दिसम्बर ডিসে "
    "ডিসেম্বর dhj dhjetor prosinac prosinca prosincu prosincem дец децембар desembre դեկ դեկտեմբեր դեկտեմբերի "
    "ธค ธันวาคม เดือนธันวาคม ธันวา gruod gruodis gruodžio decembris dets detsember abe abendua decembro டிச "
    "டிசம்பர் డిసెం డిసెంబర్ डिसें डिसेंबर",
)

MONTHS: dict[str, int] = {word: month for month, row in enumerate(_NAMES, 1) for word in row.split()}
