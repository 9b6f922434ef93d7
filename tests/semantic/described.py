"""News made up for the search by meaning: what an article says, and somebody's words for it, which
are others."""

from __future__ import annotations

from newscrawler.items import Article
from tests.semantic.small import article

#: Title, text, description.
_TOLD = [
    (
        "Giá vàng miếng vượt 120 triệu đồng một lượng",
        "Sáng nay các doanh nghiệp nâng giá mua vào thêm nửa triệu đồng. Cửa tiệm mở sớm.",
        "Kim loại quý lập kỷ lục, người ta đổ xô đi sắm",
    ),
    (
        "Bão số 5 đổ bộ, Hà Nội cho học sinh nghỉ học",
        "Gió giật cấp 10 làm đổ hàng trăm cây xanh trong đêm.",
        "Thiên tai khiến trường lớp ở thủ đô phải đóng cửa",
    ),
    (
        "Đội tuyển nữ thắng 4-0 ở trận mở màn",
        "Hai bàn đến trong hiệp một, thủ môn đội khách mắc lỗi.",
        "Các cô gái chơi bóng đá khởi đầu giải rất tốt",
    ),
    (
        "Ngân hàng Nhà nước giảm lãi suất điều hành",
        "Doanh nghiệp kỳ vọng chi phí vay vốn giảm từ quý sau.",
        "Tiền đi mượn sẽ rẻ hơn với các công ty",
    ),
    (
        "Phát hiện loài ếch mới ở Tây Nguyên",
        "Con vật dài ba centimet, kêu vào lúc nửa đêm.",
        "Nhà khoa học tìm thấy một động vật lưỡng cư chưa từng được biết",
    ),
    (
        "Metro số 1 chở hai triệu lượt khách",
        "Sau ba tháng, tàu chạy đúng giờ và kín chỗ vào giờ cao điểm.",
        "Đường sắt đô thị được người dân ưa chuộng",
    ),
    (
        "Bệnh viện ghép tim thành công cho bé 8 tuổi",
        "Ca mổ kéo dài bảy giờ, quả tim đến từ người hiến cách 1.700 km.",
        "Bác sĩ phẫu thuật cứu sống một em nhỏ",
    ),
    (
        "Xuất khẩu cà phê lập kỷ lục",
        "Giá hạt robusta tăng gấp đôi vì hạn hán ở Brazil.",
        "Nông sản bán ra nước ngoài thu về nhiều tiền nhất từ trước đến nay",
    ),
    (
        "Công an bắt nhóm lừa đảo qua điện thoại",
        "Chúng giả làm nhân viên ngân hàng, chiếm đoạt 40 tỷ đồng.",
        "Cảnh sát triệt phá băng tội phạm lấy tiền của nạn nhân",
    ),
    (
        "Nhà hát mở lại vở chèo cổ sau 30 năm",
        "Nghệ nhân 80 tuổi truyền nghề cho lớp diễn viên trẻ.",
        "Sân khấu truyền thống được khôi phục",
    ),
    (
        "Central bank leaves key rate at 4.5 per cent",
        "Analysts had expected a cut after inflation eased.",
        "Monetary policy unchanged, loans stay costly",
    ),
    (
        "Fire destroys furniture plant outside the capital",
        "Three workers were treated for smoke; the cause is unknown.",
        "Blaze guts a factory, employees hurt",
    ),
    (
        "Scientists find water ice near the Moon's south pole",
        "The probe's drill reached half a metre below the dust.",
        "Frozen deposits discovered by a lunar mission",
    ),
    (
        "Striker out for the season with torn knee ligament",
        "He fell after a tackle in the tenth minute and left the ground on a stretcher.",
        "Injured footballer will not play again this year",
    ),
    (
        "Parliament passes law on plastic bags",
        "Shops must charge for them from January.",
        "Legislators move against throwaway packaging",
    ),
    (
        "Airline cancels 200 flights over pilots' walkout",
        "Passengers slept in the terminal.",
        "Strike grounds planes, travellers stranded",
    ),
]
ARTICLES: list[Article] = [
    article(900 + n, title, content) for n, (title, content, _) in enumerate(_TOLD)
]
#: As benchmarks.bench_meaning asks: text and id of the article.
DESCRIPTIONS = [(text, ARTICLES[n].id) for n, (_, _, text) in enumerate(_TOLD)]
