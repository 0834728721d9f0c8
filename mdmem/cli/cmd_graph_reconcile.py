"""mdmem graph reconcile: where graph and files do not fit."""

from __future__ import annotations

import click

from mdmem.cli.graph_lines import line_of
from mdmem.cli.opening import examples, open_store
from mdmem.cli.output import clean, emit, json_option, say


@click.command("reconcile")
@click.option("--fix", is_flag=True, help="Give renamed notes their old names as aliases; nothing else is touched.")
@json_option
@click.pass_context
@examples("mdmem graph reconcile", "mdmem graph reconcile --fix", "mdmem graph reconcile --json")
def command(ctx: click.Context, fix: bool, as_json: bool) -> None:
    """Report entities without relations, edges that lead nowhere with the nearest names, renamed notes that are still called
    by their old name, ids that two files hold, and notes whose file is gone."""
    from mdmem.graph.reconcile import reconcile

    report = reconcile(open_store(ctx, need="write" if fix else "read"), fix=fix)
    data = report.as_dict()

    def human() -> None:
        for row in report.edges:
            place = clean(row["path"]) + (f":{row['line']}" if row["line"] else "")
            say(f"{row['state']:<9}  {place}: {row['rel']}: {clean(row['target'])}")
            if row["candidates"]:
                say(f"           perhaps {clean(', '.join(row['candidates']))}")
            elif row.get("do"):
                say(f"           {clean(row['do'])}")
        for row in report.renamed:
            say(f"renamed    {clean(row['path'])}, still called {clean(', '.join(row['called']))}")
        for row in report.twins:
            say(f"two files  {clean(row['id'])}: {clean(', '.join(row['paths']))}")
        for row in report.gone:
            say(f"gone       {clean(row['path'])} ({clean(row['title'])})")
            say(f"           {clean(row['do'])}")
        for row in report.orphans:
            say(f"orphan     {line_of(row)}")
        for row in report.fixed:
            what = f"is also called {', '.join(row['aliases'])} now" if row["aliases"] else f"left as it is: {row['reason']}"
            say(f"fixed      {clean(row['path'])} {clean(what)}")
        if not data["findings"]:
            say("Everything fits.")

    emit(data, as_json, human)
