"""Write mdmem/recall/usual.py's number: the mean vector of questions of everyday work, asked of the bundled model.

    python tools/build_usual_question.py

Half of them English, half the same in Chinese, so that no language is part of what they have in common. None is of a set that
recall is measured on.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from mdmem.index.embed import BUNDLED
from mdmem.index.embed_onnx import OnnxEmbedder
from mdmem.recall.usual import STEP

QUESTIONS = """
When did we decide to move the database?
What is the name of the new project?
Who reviewed the last release?
Why did the build fail on Monday?
How do I set up the development environment?
Where are the backups kept?
Which library do we use for parsing?
How many people were at the meeting?
What did she say about the budget?
How long does a deployment take?
What are his plans for the summer?
Who is responsible for the billing service?
What kind of music does she like?
Does the server support compression?
Has the contract been signed yet?
What happened after the outage?
How did they solve the problem with the tests?
Where did he go on holiday?
What is the retry limit of the job queue?
When is the next appointment?
What book did they read together?
Which city does he live in?
What should be done before a release?
Why was the feature removed?
我们什么时候决定更换数据库?
新项目叫什么名字?
谁审查了上一个版本?
为什么周一的构建失败了?
怎样配置开发环境?
备份放在哪里?
我们用哪个库来解析?
会议有多少人参加?
她对预算说了什么?
部署需要多长时间?
他夏天有什么计划?
谁负责计费服务?
她喜欢什么样的音乐?
服务器支持压缩吗?
合同签了吗?
故障之后发生了什么?
他们怎么解决测试的问题?
他去哪里度假了?
任务队列的重试上限是多少?
下一次预约是什么时候?
他们一起读了什么书?
他住在哪个城市?
发布之前应该做什么?
为什么删除这个功能?
"""


def main() -> None:
    with TemporaryDirectory() as folder:
        rows = OnnxEmbedder(BUNDLED, Path(folder)).queries(QUESTIONS.split("\n")[1:-1])
    mean = rows.astype(np.float64).mean(axis=0)
    steps = np.rint(mean / STEP)
    if np.abs(steps).max() > 127:
        raise SystemExit(f"STEP is too small for {np.abs(mean).max():.4f}")
    print(base64.b85encode(steps.astype(np.int8).tobytes()).decode())


if __name__ == "__main__":
    main()
