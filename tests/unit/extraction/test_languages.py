"""Small made-up pages of languages that the stored real pages have few of."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from newscrawler.extraction.context import PageContext
from newscrawler.extraction.document import Document
from newscrawler.extraction.extract import extract


@dataclass(frozen=True)
class Page:
    lang: str
    host: str
    title: str
    byline: str
    authors: list[str]
    date: str
    when: str
    text: str
    box: str


PAGES = [
    Page(
        "th", "example.co.th", "สภาเมืองอนุมัติสะพานใหม่ข้ามแม่น้ำ", "โดย สมชาย ใจดี", ["สมชาย ใจดี"],
        "เผยแพร่: 3 พ.ค. 2567 14:05 น.", "2024-05-03T14:05:00+07:00",
        "สภาเมืองได้อนุมัติการก่อสร้างสะพานใหม่ข้ามแม่น้ำเมื่อวันศุกร์ที่ผ่านมา โดยจะเริ่มงานในฤดูใบไม้ผลิปีหน้า {n}.",
        "อ่านเพิ่มเติม",
    ),
    Page(
        "ja", "example.co.jp", "市議会が川を渡る新しい橋を承認した", "文：山田太郎", ["山田太郎"],
        "2024年5月3日 14時05分", "2024-05-03T14:05:00+09:00",
        "市議会は金曜日に川を渡る新しい橋の建設を承認した。工事は来年の春に始まり、二年後に完成する予定だという。番号{n}。",
        "関連記事",
    ),
    Page(
        "zh", "example.cn", "市议会批准新建跨河大桥方案", "记者：王小明", ["王小明"],
        "2024年05月03日 14:05", "2024-05-03T14:05:00+08:00",
        "市议会星期五批准了新建跨河大桥的方案。工程将于明年春天开工，预计两年后完工，费用由城市和国家共同承担。第{n}段。",
        "相关阅读",
    ),
    Page(
        "ko", "example.co.kr", "시의회 강을 건너는 새 다리 승인", "김민수 기자", ["김민수"],
        "입력 2024.05.03 14:05", "2024-05-03T14:05:00+09:00",
        "시의회는 금요일 강을 건너는 새 다리 건설을 승인했다. 공사는 내년 봄에 시작되어 이 년 뒤에 끝날 예정이라고 밝혔다 {n}.",
        "관련기사",
    ),
    Page(
        "ar", "example.com.eg", "المجلس يوافق على الجسر الجديد فوق النهر", "كتب: أحمد حسن", ["أحمد حسن"],
        "الجمعة 3 مايو 2024 - 02:05 مساء", "2024-05-03T14:05:00+03:00",
        "وافق مجلس المدينة يوم الجمعة على بناء جسر جديد فوق النهر، وسيبدأ العمل في ربيع العام المقبل وينتهي بعد عامين {n}.",
        "اقرأ أيضا",
    ),
    Page(
        "hi", "example.in", "परिषद ने नदी पर नए पुल को मंज़ूरी दी", "लेखक: अमित शर्मा", ["अमित शर्मा"],
        "3 मई 2024, 14:05 IST", "2024-05-03T14:05:00+05:30",
        "नगर परिषद ने शुक्रवार को नदी पर नए पुल के निर्माण को मंज़ूरी दे दी। काम अगले साल वसंत में शुरू होगा और दो साल चलेगा {n}।",
        "यह भी पढ़ें",
    ),
    Page(
        "ru", "example.ru", "Совет одобрил новый мост через реку", "Автор: Иван Петров", ["Иван Петров"],
        "3 мая 2024, 14:05", "2024-05-03T14:05:00+03:00",
        "Городской совет в пятницу одобрил строительство нового моста через реку, работы начнутся весной будущего года {n}.",
        "Читайте также",
    ),
    Page(
        "id", "example.co.id", "Dewan setujui jembatan baru di atas sungai", "Penulis: Budi Santoso", ["Budi Santoso"],
        "Jumat, 03 Mei 2024 14:05 WIB", "2024-05-03T14:05:00+07:00",
        "Dewan kota pada hari Jumat menyetujui pembangunan jembatan baru di atas sungai yang akan dimulai tahun depan {n}.",
        "Baca juga",
    ),
    Page(
        "tr", "example.com.tr", "Meclis nehrin üzerindeki yeni köprüyü onayladı", "Yazan: Ahmet Yılmaz", ["Ahmet Yılmaz"],
        "3 Mayıs 2024 14:05", "2024-05-03T14:05:00+03:00",
        "Belediye meclisi cuma günü nehrin üzerine yeni bir köprü yapılmasını onayladı, işler gelecek baharda başlayacak {n}.",
        "İlgili haberler",
    ),
    Page(
        "es", "example.es", "El consejo aprueba el nuevo puente sobre el río", "Por Ana Gómez", ["Ana Gómez"],
        "3 de mayo de 2024 - 14:05 h", "2024-05-03T14:05:00+02:00",
        "El consejo de la ciudad aprobó el viernes la construcción de un nuevo puente sobre el río que abrirá en dos años {n}.",
        "Te puede interesar",
    ),
    Page(
        "pt", "example.com.br", "Conselho aprova a nova ponte sobre o rio", "Por João Silva", ["João Silva"],
        "03/05/2024 14h05", "2024-05-03T14:05:00-03:00",
        "O conselho da cidade aprovou na sexta-feira a construção de uma nova ponte sobre o rio que deve abrir em dois anos {n}.",
        "Leia também",
    ),
    Page(
        "he", "example.co.il", "המועצה אישרה את הגשר החדש מעל הנהר", "מאת: דוד כהן", ["דוד כהן"],
        "3 במאי 2024, 14:05", "2024-05-03T14:05:00+03:00",
        "מועצת העיר אישרה ביום שישי את בניית הגשר החדש מעל הנהר, והעבודות יתחילו באביב של השנה הבאה לפי התוכנית {n}.",
        "קראו גם",
    ),
    Page(
        "fa", "example.ir", "شورا پل جدید روی رودخانه را تصویب کرد", "نویسنده: رضا احمدی", ["رضا احمدی"],
        "2024-05-03 14:05", "2024-05-03T14:05:00+03:30",
        "شورای شهر روز جمعه ساخت پل جدید روی رودخانه را تصویب کرد و کار در بهار سال آینده آغاز خواهد شد، به گفته شهردار {n}.",
        "بیشتر بخوانید",
    ),
]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=[page.lang for page in PAGES])
def test_page_of_a_language(page: Page) -> None:
    lines = [page.text.format(n=n) for n in range(7)]
    markup = (
        f"<html lang={page.lang}><head><meta charset=utf-8><title>{page.title}</title></head><body>"
        f"<header><a href=/>Example</a></header><div class=k1><h1>{page.title}</h1><div class=k2>{page.date}</div>"
        f"<div class=k3>{page.byline}</div><div class=k4>{''.join(f'<p>{line}</p>' for line in lines[:4])}"
        f"<p>{page.box}: <a href=/b.html>{page.title} 2</a></p>{''.join(f'<p>{line}</p>' for line in lines[4:])}"
        f"<p>{page.box}</p><ul><li><a href=/c.html>{page.title} 3</a></li></ul></div></div></body></html>"
    )
    found = extract(Document(markup.encode(), f"https://www.{page.host}/a-1.html"), PageContext())
    assert found.title.value == page.title
    assert found.published.value is not None and found.published.value.isoformat() == page.when
    assert found.content.value == "\n\n".join(lines)
    assert found.authors.value == page.authors
