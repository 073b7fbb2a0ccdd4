"""The words in names of columns, all taken from real logs."""

from __future__ import annotations

from memdiag.values.measurements import AxisKind, Role


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _ranked(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# Axes. Of several the first in these tables is used.
AXES: tuple[tuple[AxisKind, tuple[str, ...]], ...] = (
    (
        AxisKind.STEP,
        _ranked(
            "step steps iteration iterations iter iters it update updates batch batches minibatch"
            " 步数 步 迭代 ステップ schritt schritte étape étapes pas paso pasos passo шаг шага"
            " 스텝 단계 bước adım krok stap крок пакет партия партія итерация ітерація"
            " 배치 批次 schritten pasos passos passi steg kroki kroków stappen шаги шагов шагах"
            " кроки кроків iterationen itération itérations iteración iteraciones iteração"
            " iterações iterazione iterazioni iteracja iteracje iteracji итерации итераций"
            " итерациях ітерації ітерацій"
        ),
    ),
    (
        AxisKind.EPOCH,
        _ranked(
            "epoch epochs 轮次 エポック epoche epochen époque época epoca epoka epok эпоха"
            " 에폭 에포크 époques épocas epoki эпохи эпох эпохах"
        ),
    ),
    (
        AxisKind.REQUEST,
        _ranked(
            "request requests req reqs query queries call calls predict predictions prediction"
            " inference inferences message messages invocation invocations transaction transactions"
            " job jobs ops prompt prompts episode episodes frame frames fra"
            " anfrage anfragen abfrage abfragen aufrufe aufrufen requête requêtes appels petición"
            " peticiones solicitud solicitudes llamadas consultas requisições chamadas richiesta"
            " richieste chiamate zapytanie zapytań żądań verzoeken запрос запросов запросы запитів"
            " 请求 請求 リクエスト 요청"
        ),
    ),
    (
        AxisKind.SECONDS,
        _ranked(
            "time elapsed timestamp timestamps ts datetime date clock runtime walltime uptime t at"
            " seconds relative changed datum uhrzeit zeit fecha hora heure horaire orario dato tid"
            " tidspunkt klokkeslett tijd tijdstip czas godzina čas tarih saat aika время дата час"
            " 时间 時間 时刻 時刻 日期 日時 시간 시각 날짜 일시 when"
        ),
    ),
    (
        AxisKind.INDEX,
        _ranked(
            "cycle cycles sample samples dump round rounds run index idx i n row loop repeat load"
            " reload reloads operation operations fit fits build builds trial trials fold folds"
            " experiment experiments model models pass passes attempt attempts no"
        ),
    ),
    (AxisKind.TICK, _ranked("tick ticks")),
)
# Of these, names that do not say what is counted.
BARE_NUMBERS = _words("index idx i n row no")
# An axis only if there is no other and the column increases: it may be a duration.
REQUESTS = _words("fetch fetches")
# Words that may accompany an axis word without changing its meaning: `trainer/global_step`.
AXIS_FILLERS = _words(
    "global train trainer training current total num number no nr n idx index id count counter"
    " wall stamp utc relative since start end interval elapsed unix process sys the of done"
    " completed so far time realtime log optimizer opt mini sampled recorded logged collected"
    " measured captured created last _"
)

# Tags.
PHASES = _words("phase stage mode split section")
PHASE_FILLERS = _words("current training name")
PIDS = frozenset({("pid",), ("process", "id"), ("proc", "id"), ("os", "pid")})
# Of what it may be a member: `data.pid`, but not `parent.pid`.
PID_FILLERS = _words("data process proc os app program service fields tags labels attributes")
GENERATIONS = frozenset({("generation",), ("incarnation",), ("restart",), ("restarts",)})
NAMES = frozenset({("name",), ("metadata", "name")})  # the latter of Kubernetes' objects
LABELS = _words(
    "rank worker series instance process host hostname node gpu device container pod command cmd"
    " replica proc id pci bus"
)
LABEL_FILLERS = _words("local global world id name index idx uuid no")

# What a program is given: `batch size`, `seq_len`.
SETTINGS = _words(
    "size length len dim dims width depth height layers heads resolution workers params parameters"
    " context precision dtype"
)

# Metrics.
NO_AMOUNTS = _words(
    "bandwidth clock clocks util utilization speed throughput rate disk network net io read write"
    " sent recv received download upload loss lr accuracy latency duration freed written temp"
    " temperature power fan cores tried increment delta diff difference growth grew change"
    " increase eta cum cumulative cumulatively cumulated lifetime fragmentation blocksize tokens"
    " params parameters estimated retries generated headers vars body payload response"
    " efficiency faults pgfault pgmajfault pgpgin pgpgout pgscan pgsteal failcnt version nr"
)
# Together these words name no amount in use: how often something happened, or the size of one part.
NO_LEVELS = tuple(
    map(
        _words,
        (
            "num allocs",
            "alloc calls",
            "free calls",
            "largest alloc",
            "largest block",
            "largest tensor",
            "total allocated objects",
            "gc total allocated",
            "page size",
            "text size",
        ),
    )
)
# Of `torch.cuda.memory_stats`: `allocated_bytes.all.current` is in use, and the sum of all that was
# ever allocated is `allocated_bytes.all.allocated`.
POOLS = _words("all pool")
# A total of these that stands beside its own amount sums up all that was ever allocated.
ALLOCATED = _words("alloc allocated")
# The sum of all allocations until now, but not the largest of them.
ALLOCATED_SO_FAR = _words("allocated so far")
LARGEST = _words("max maximum peak")
# Of memory in percent: used, not busy. (A device's drivers call the load of its bus the same.)
UTILIZATION = _words("util utilization")
# Memory that is left, in the languages of `MEMORY`. What is available includes caches.
AVAILABLE = _words(
    "available avail freeable disponible disponibles disponível disponíveis disponibile disponibili"
    " verfügbar verfügbarer verfügbares verfügbare beschikbaar beschikbare"
    " dostępna dostępnej dostupná tillgängligt tilgængelig tilgjengelig käytettävissä"
    " kullanılabilir доступно доступная доступной disponibilă disponibila dostupno dostupna"
    " διαθέσιμη διαθέσιμο налична налично tersedia rendelkezésre"
)
FREE = _words(
    "free libre libres livre livres libera frei freier freies freie vrij vrije wolna wolnej volná"
    " ledigt ledig vapaa boş свободно свободная свободной свободна вільно вільна liberă voľná"
    " voľnej lliure lliures ελεύθερη ελεύθερο slobodno slobodna prosto szabad פנוי bebas kosong"
)
FALLING = (
    AVAILABLE
    | FREE
    | _words(
        "remaining headroom left unused spare restante restantes restant rimanente verbleibend"
        " verbleibender осталось sisa zostáva rămasă rămas restant resterende υπόλοιπο"
    )
)
# The same in scripts without blanks.
AVAILABLE_PARTS = ("可用", "利用可能", "가용", "사용가능")
FALLING_PARTS = (
    *AVAILABLE_PARTS,
    "空闲",
    "剩余",
    "未使用",
    "空き",
    "残り",
    "여유",
    "남은",
    "미사용",
)
NOT_USED = _words("not used")
# Words of other names of memory.
USED = _words(
    "used use uses using usage in consumed consumption current now cur total peak max maximum min"
    " minimum avg average mean footprint size python main tree rank apps usada utilisée utilizada"
    " usata belegt belegter verwendet gebruikt zajęta использовано занято folosită folosita"
    " utilizată usada utilitzada brukt brukes använt brugt terpakai digunakan използвана използвано"
    " korišćena korištena použitá použitej χρήση használt käytetty בשימוש"
)
USED_PARTS = ("占用", "使用", "已用", "사용")
# Words that may follow, besides those of memory and machines.
FALLING_FILLERS = _words(
    "physical virtual phys proc process left space bytes kernel pod container instance worker rank"
    " current now still total min percent cur at the buffers pages real"
)
CAPACITY = _words("limit lim capacity quota")
# What keeps its items until it is full, and what has been put into something that does.
STORES = _words(
    "replay buffer cache lru queue pool store reservoir window archive bank added loaded preloaded"
    " prefetched cached stored filled buffered"
)
# Memory in other languages.
_MEMORY_ABROAD = _words(
    "speicher arbeitsspeicher pamięć pamięci paměť paměti geheugen minne minnes muisti bellek"
    " hukommelse mémoire memoria memória memorie memorii memòria память памяти памяті памет"
    " паметта memorija memorije меморија pomnilnik pomnilnika pamäť pamäte pamäti μνήμη μνήμης"
    " memori atmintis atminties atmiņa atmiņas mälu זיכרון הזיכרון ذاكرة الذاكرة حافظه หน่วยความจำ"
)
TOTALS = _words(
    "total totale totala totaal totalt gesamt insgesamt celkem łącznie yhteensä toplam всего общая"
    " totales totali totais totaux samlet samlede összes összesen celková celkový celkovo"
    " całkowita łączna razem общий всього загальна общо ukupno ukupna укупно skupaj skupna σύνολο"
    " συνολική kopā kopējā kokku إجمالي ทั้งหมด"
)
TOTAL_OF = _words("mem memory ram vram swap host system") | _MEMORY_ABROAD
DEVICE = _words("显存 vram gpu cuda device mps hip rocm nvml smi hbm tpu npu xpu fb")
HOST = _words("host system sys machine node svmem")
RESERVED = _words(
    "reserved réservé réservée reservado reservada reserviert riservato riservata gereserveerd"
    " zarezerwowane зарезервировано"
)
MEMORY = _words(
    "mem memory ram rss uss pss vram heap resident res working wset wss swap"
    " virt virtual vms vsz vsize vmsize vmpeak"
    " arbeitsseiten arbeitssatz werkset munkakészlet озу"
    " memusage memuse memoryusage memoryuse offheap onheap nonheap javaheap jsheap gcheap lvheap"
    " allocated alloc anon private maxrss inuse malloc tracemalloc hwm rssanon fb"
    " available free uordblks malloced"
)
MEMORY |= RESERVED | _MEMORY_ABROAD
# nvidia-smi's names, which do not mention the GPU. Redis has one of them, without a unit.
USED_MEMORY = "used_memory"
NVIDIA_MEMORY = _words(f"memory.used memory.free memory.total {USED_MEMORY} used_gpu_memory")
# Ends of words such as `gpumem` and the kernel's `vmrss`.
MEMORY_ENDINGS = ("mem", "memory", "rss", "vram", "speicher", "minne", "geheugen", "muisti")
# Compounds of memory and its use: `speicherverbrauch`, `minnesanvändning`, `geheugengebruik`.
MEMORY_STEMS = ("speicher", "arbeitsspeicher", "minne", "geheugen", "muisti", "hukommelse")
USE_ENDINGS = (
    *("verbrauch", "nutzung", "bedarf", "belegung", "auslastung", "användning", "förbrukning"),
    *("åtgång", "bruk", "forbrug", "gebruik", "verbruik", "käyttö", "kulutus"),
)
# `torch.cuda.mem_get_info()` is free memory and the total.
FREE_FIRST = _words("mem get info")

# Words of scripts without blanks, which stand anywhere among others: `内存占用`.
MEMORY_PARTS = ("内存", "显存", "メモリ", "메모리")
# The same for totals, and German compounds.
TOTAL_PARTS = ("总", "總", "合計", "전체", "gesamtspeicher", "gesamtarbeitsspeicher")

# Counts: the noun decides, whatever the other words are.
COUNTS: tuple[tuple[Role, frozenset[str]], ...] = (
    (Role.TENSORS, _words("tensors")),
    (Role.PROCESSES, _words("nproc nprocs processes procs children")),
    (
        Role.OBJECTS,
        _words(
            "objects objs blocks handles buffers entries allocations allocs fds descriptors threads"
            " refs references copies instances connections sockets graphs modules nodes live"
            " reachable garbage"
        ),
    ),
)

# Amounts: (role, one of these words, and one of these too); the first that fits.
AMOUNTS: tuple[tuple[Role, frozenset[str], frozenset[str]], ...] = (
    (Role.SWAP, _words("swap"), frozenset()),
    (Role.VIRTUAL, _words("vms vsz virt virtual vsize vmsize vmpeak"), frozenset()),
    (Role.PEAK, _words("peak max maximum maxrss hwm highwater"), frozenset()),
    (Role.UNIQUE, _words("uss private unique"), frozenset()),
    (Role.PROPORTIONAL, _words("pss"), frozenset()),
    (Role.DEVICE_RESERVED, RESERVED, frozenset()),
    (Role.DEVICE_RESERVED, _words("cached pool"), DEVICE),
    (Role.DEVICE_ALLOCATED, _words("allocated alloc active"), DEVICE),
    (Role.IN_USE, _words("allocated alloc"), _words("heap malloc jemalloc tcmalloc memstats")),
    (Role.HOST, _words("active"), HOST),
    (Role.DEVICE_ALLOCATED, _words("allocated alloc active"), frozenset()),
    (Role.DEVICE, DEVICE, frozenset()),
    (Role.CACHE, _words("cached cach buff pagecache slab"), frozenset()),
    (Role.CACHE, _words("cache buffers"), HOST),
    (Role.RESIDENT, _words("rss vmrss rssanon"), frozenset()),
    (Role.HOST, HOST, frozenset()),
    (Role.HOST, _words("free"), frozenset()),
    (Role.IN_USE, _words("inuse malloc malloced tracemalloc wasm tensor tensors"), frozenset()),
    (Role.COLLECTED_HEAP, _words("heap external managed gc"), frozenset()),
)
# Words of an amount at a moment, beside a size.
IN_USE = _words(
    "used use uses using usage consumed current now peak consumes consuming consumption occupied"
    " footprint resident held consume occupies occupying utilizing holds holding"
)
# What has memory, if the name says nothing else: "cpu (MB)" beside "gpu (MB)".
HOLDERS = (
    _words("process proc python main cpu kernel driver grand total") | HOST | LABELS | LABEL_FILLERS
)
# Pairs of words with one meaning.
PAIRS: tuple[tuple[Role, frozenset[str]], ...] = (
    (Role.IN_USE, _words("in use")),
    (Role.IN_USE, _words("after gc")),
    (Role.COLLECTED_HEAP, _words("old gen")),  # of the JVM
    (Role.COLLECTED_HEAP, _words("tenured gen")),
    (Role.IN_USE, _words("definitely lost")),  # of valgrind
    (Role.IN_USE, _words("indirectly lost")),
    (Role.IN_USE, _words("possibly lost")),
    (Role.VIRTUAL, _words("vm size")),
    (Role.VIRTUAL, _words("vm peak")),
    (Role.HOST, _words("host used")),
    (Role.DEVICE, _words("gpu used")),
    (Role.PEAK, _words("gpu peak")),
    (Role.DEVICE, _words("emptying cache")),
    (Role.DEVICE, _words("empty cache")),
)
