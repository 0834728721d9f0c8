"use strict";
// The words of the page in two languages. A word without a translation shows in English.
const CHINESE = {
  "Overview": "概览", "Search": "搜索", "Graph": "关系图", "Blockers": "阻塞", "Conflicts": "冲突", "Devices": "设备与同步",
  "Skip to the content": "跳到正文", "Language": "语言", "Views": "视图", "notes": "条笔记", "Notes": "笔记",
  "Growth": "增长", "Notes over time": "笔记数量随时间变化", "Kinds": "种类", "Memory types": "记忆类型", "Tiers": "层级", "Scopes": "范围", "Tags": "标签",
  "Recent sessions": "最近的会话", "Changed last": "最近更改", "Needs a person": "需要处理", "Nothing waits for you.": "没有需要处理的事。",
  "memory": "记忆", "entity": "实体", "session": "会话", "task": "任务", "message": "消息", "agent": "代理", "note": "笔记",
  "decision": "决定", "preference": "偏好", "profile": "档案", "pattern": "模式", "case": "案例", "event": "事件", "fact": "事实",
  "context": "背景", "procedure": "步骤", "core": "核心", "working": "工作", "peripheral": "外围", "shared": "共享", "(none)": "（无）",
  "Words or a question": "关键词或问题", "Mode": "方式", "hybrid": "混合", "keyword": "关键词", "semantic": "语义", "Kind": "种类", "all": "全部",
  "Find": "查找", "Nothing found.": "没有找到。", "found": "条结果", "Why it was found": "为什么找到", "How the search went": "搜索过程", "score": "得分",
  "This file searches by words only.": "此文件只按关键词搜索。",
  "Type": "类型", "Relation": "关系", "Around this note": "以此笔记为中心", "Show all": "显示全部", "Zoom in": "放大", "Zoom out": "缩小", "Fit": "适应窗口",
  "The relation graph": "关系图", "Drag to move, wheel or + and − to zoom, arrows to pan, Enter opens the chosen note, Tab leaves.":
    "拖动平移，滚轮或 + − 缩放，方向键移动，回车打开所选笔记，Tab 离开。",
  "Shown are the most linked": "只显示关联最多的", "of": "/", "links": "条关系", "Notes in the picture": "图中的笔记", "No relations yet.": "还没有关系。",
  "Nothing is blocked.": "没有阻塞的事项。", "since": "自", "Waits for": "等待", "Waiting for it": "被其阻塞", "It waits for itself in the end: a ring.": "形成循环等待。",
  "ended": "已结束", "not found": "未找到", "No conflicts.": "没有冲突。", "Version": "版本", "removed": "已删除", "Keep this": "保留此版本", "Keep both": "两者都保留",
  "Delete the note": "删除此笔记", "Settled.": "已解决。", "saved, not committed yet": "已保存，尚未提交", "This file is only for reading: settle it with mdmem resolve.": "此文件只读：请用 mdmem resolve 解决。",
  "This store is not trusted on this machine, so nothing is written: mdmem trust.": "此库在本机未受信任，不能写入：mdmem trust。", "body": "正文",
  "Agents and devices": "代理与设备", "Agent": "代理", "Device": "设备", "Seen": "最近出现", "Doing": "正在做", "Tasks": "任务", "Sync": "同步", "State": "状态",
  "Remote": "远程", "Uncommitted": "未提交", "Unpushed": "未推送", "Behind": "落后", "Last sync": "上次同步", "never": "从未", "none": "无",
  "Fields": "字段", "Text": "正文", "Related": "相关", "Timeline": "时间线", "Show the change": "查看更改", "linked": "被关联", "created": "创建", "changed": "更改",
  "deleted": "删除", "renamed": "改名", "In the graph": "在图中查看", "No history yet: it is not committed.": "还没有历史：尚未提交。", "Nothing.": "无。",
  "Loading…": "载入中…", "No access": "无法访问", "Open the address that mdmem dashboard printed in the terminal.": "请打开 mdmem dashboard 在终端中打印的地址。",
  "The server does not answer. Is mdmem dashboard still running?": "服务器没有回应。mdmem dashboard 还在运行吗？", "Not in this file.": "不在此文件中。",
  "A file made at": "文件生成于", "more notes are only counted.": "条笔记仅计数。", "cut: the note is longer": "已截断：笔记更长", "more": "更多",
};
const language = { now: "en" };
try {
  language.now = localStorage.getItem("mdmem-language") || "";
} catch { /* storage is closed to this page */ }
if (!["en", "zh"].includes(language.now)) language.now = /^zh/i.test(navigator.language || "") ? "zh" : "en";

function t(word) {
  return (language.now === "zh" && Object.hasOwn(CHINESE, word) && CHINESE[word]) || word;
}

function setLanguage(name) {
  language.now = name;
  try { localStorage.setItem("mdmem-language", name); } catch { /* as above */ }
}
