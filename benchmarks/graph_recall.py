"""Whether the graph stream (`recall.graph`) helps recall.

    python benchmarks/graph_recall.py [--mode keyword|hybrid] [--locomo locomo10.json] [--seed 7]

Asks the same questions with the stream off and on, and prints recall@1, recall@5 and MRR in percent of each kind:
`near` names an entity and its answer stands in a note that is linked to it and does not name it; `own` names an entity and
the answer stands in a note that does; `plain` names none. Half of the names and texts are Chinese. With a LoCoMo file, every
speaker is an entity to which all sessions of that conversation are linked: names that say nothing, the worst case.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from mdmem.clock import FixedClock  # noqa: E402
from mdmem.recall.bench_data import load_dataset  # noqa: E402
from mdmem.recall.query import Filters, Query  # noqa: E402
from mdmem.recall.recall import ranking  # noqa: E402
from mdmem.setup import init  # noqa: E402
from mdmem.store import Store  # noqa: E402

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=timezone.utc)
ENGLISH = (
    "Apollo", "Borealis", "Cinder", "Dorado", "Ember", "Falcon", "Granite", "Harbor", "Ivory", "Juniper",
    "Kestrel", "Lumen", "Meridian", "Nimbus", "Orchid",
)  # fmt: skip
CHINESE = (
    "支付网关", "结算平台", "北辰系统", "云梯", "青鸟", "天枢", "灵犀", "磐石",
    "鸿雁", "星火", "启明", "长风", "墨池", "玉衡", "海棠",
)  # fmt: skip
# (question with {name}, texts of the answer); the number in the text tells the notes apart.
IN_ENGLISH = (
    ("which database does {name} use", "PostgreSQL {n} behind a pooler holds the orders."),
    ("who leads {name}", "Ada Number{n} decides what is built next."),
    ("what went wrong in {name} last month", "The certificate expired at {n}:00 and nobody was paged."),
    ("when is the release of {name}", "It ships on day {n} after the freeze."),
)
IN_CHINESE = (
    ("{name}用什么数据库", "订单存放在第{n}号 PostgreSQL 集群里，前面有连接池。"),
    ("{name}由谁负责", "第{n}位负责人是王工，决定下一步做什么。"),
    ("{name}上个月出了什么问题", "证书在{n}点过期，没有人收到告警。"),
    ("{name}什么时候发布", "冻结之后第{n}天发布。"),
)
Asked = tuple[str, str, frozenset[str]]  # kind of question, its words, the paths that answer


def note(root: Path, path: str, body: str, **fields: str) -> str:
    """Write a note; returns its path."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    head = "".join(f"{key}: {value}\n" for key, value in fields.items())
    target.write_text(f"---\n{head}created: 2026-10-01T00:00:00Z\nupdated: 2026-10-01T00:00:00Z\n---\n{body}\n", "utf-8")
    return path


def synthetic(root: Path, rng: random.Random) -> list[Asked]:
    """Write 30 projects with four linked notes and one memory each, and 150 notes about nothing; return the questions."""
    asked: list[Asked] = []
    for number, name in enumerate((*ENGLISH, *CHINESE)):
        chinese = number >= len(ENGLISH)
        about = f"{name} 是一个项目。" if chinese else f"{name} is a project of the platform group."
        note(root, f"entities/project/p{number}.md", about, id=f"project-{number}", type="project", title=name)
        for place, (question, text) in enumerate(IN_CHINESE if chinese else IN_ENGLISH):
            path = f"entities/system/s{number}-{place}.md"
            title = f"第{rng.randrange(10**6)}号" if chinese else f"Item {rng.randrange(10**6)}"
            note(root, path, text.format(n=rng.randrange(2, 24)), type="system", title=title, part_of=f"project-{number}")
            asked.append(("near", question.format(name=name), frozenset([path])))
        code = rng.randrange(10**4)
        body = f"{name} 的端口是 {code}。" if chinese else f"{name} listens on port {code}."
        path = note(root, f"memories/port{number}.md", body, type="fact", title=f"{'端口' if chinese else 'Port'} {number}")
        asked.append(("own", f"{name}的端口是多少" if chinese else f"which port does {name} listen on", frozenset([path])))
    for number in range(150):
        question, text = rng.choice((*IN_ENGLISH, *IN_CHINESE))
        body = text.format(n=rng.randrange(2, 24)) + f" Ref{number:03d}."
        path = note(root, f"memories/other{number}.md", body, type="fact", title=f"Note {number}")
        asked.append(("plain", f"{question.format(name='').strip()} Ref{number:03d}", frozenset([path])))
    return asked


_SPEAKER = re.compile(r"^([A-Z][A-Za-z]+): ", re.MULTILINE)


def conversations(root: Path, file: Path) -> list[Asked]:
    """Write the sessions of a LoCoMo file, every speaker as an entity that all of its sessions are linked to."""
    data = load_dataset(file)
    paths = {}
    speakers: set[str] = set()
    for doc in data.docs:
        talk = doc.id.partition("s")[0]
        names = sorted(set(_SPEAKER.findall(doc.text)))
        speakers |= {f"{talk}-{name}" for name in names}
        links = ", ".join(f"person-{talk}-{name}" for name in names)
        path = f"sessions/{doc.id}.md"
        paths[doc.id] = note(root, path, doc.text, kind="session", title=f"Talk {doc.id}", relates_to=f"[{links}]")
    for one in sorted(speakers):
        fields = {"id": f"person-{one}", "type": "person", "title": one.partition("-")[2]}
        note(root, f"entities/person/{one}.md", "A person.", **fields)
    return [("locomo", q.text, frozenset(paths[one] for one in q.evidence)) for q in data.questions]


def ranks(store: Store, asked: list[Asked], mode: str) -> Iterator[tuple[str, int, float]]:
    """Yield (kind of question, place of the best answer or 0, seconds)."""
    query = Query("x", limit=20, mode=mode, filters=Filters(kinds=("memory", "entity", "session")), decay=False)
    for kind, text, answers in asked:
        began = time.perf_counter()
        found = ranking([("", store)], replace(query, text=text))
        took = time.perf_counter() - began
        order = [one.candidate.row["path"] for one in found if one.candidate.row is not None]
        yield kind, next((place for place, path in enumerate(order, 1) if path in answers), 0), took


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the graph stream of recall.")
    parser.add_argument("--mode", choices=("keyword", "hybrid"), default="keyword")
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--limit", type=int, default=0, help="only so many questions of the file, spread over it")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mdmem-") as folder:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            os.environ[name] = folder
        os.environ["MDMEM_SERVE"] = "off"
        root = Path(folder) / "store"
        init(root)
        asked = conversations(root, given.locomo) if given.locomo else synthetic(root, random.Random(given.seed))
        if given.limit and len(asked) > given.limit:
            asked = asked[:: len(asked) // given.limit][: given.limit]
        options = {"agent": "bench", "device": "bench"}
        Store.open(root, cwd=root, options=options).index.refresh(embed_budget_s=None if given.mode == "hybrid" else 0.0)
        print(f"{given.mode}, seed {given.seed}; recall@1, recall@5, MRR in percent, median time")
        for on in (False, True):
            settings = {**options, "recall.graph": "on" if on else "off"}
            store = Store.open(root, cwd=root, clock=FixedClock(NOW), options=settings)
            found = list(ranks(store, asked, given.mode))
            for kind in dict.fromkeys(kind for kind, _, _ in found):
                places = [place for one, place, _ in found if one == kind]
                first = 100 * sum(place == 1 for place in places) / len(places)
                five = 100 * sum(0 < place <= 5 for place in places) / len(places)
                mrr = 100 * statistics.mean(1 / place if place else 0.0 for place in places)
                took = 1000 * statistics.median(seconds for one, _, seconds in found if one == kind)
                figures = f"{first:5.1f} {five:5.1f} {mrr:5.1f}  {took:5.1f} ms"
                print(f"graph {'on ' if on else 'off'}  {kind:<7} {len(places):>4}  {figures}", flush=True)


if __name__ == "__main__":
    main()
