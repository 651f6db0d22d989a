"""What the product measured of itself: one report at a time, with its pictures, its bars and what it does not show."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evaluation.report import Report
from memory.errors import NotFound
from review.access import page
from review.queries import measured as reads

OURS, HERE = "release", "here"


@require_GET
@page()
def measured(request: HttpRequest) -> HttpResponse:
    """The report named by `report`, or the first there is; `from=release` shows the release's where both are."""
    known = reads.evaluations()
    shown = _shown(request, known)
    report = _report(request, shown)
    context = {
        "evaluations": known,
        "shown": shown,
        "report": report,
        "is_ours": report is not None and report is shown.ours,
        "tables": request.GET.get("tables") == "1",
    }
    if report is not None:
        context |= {
            "figures": reads.figures(report),
            "pictures": reads.pictures(report),
            "rows": reads.tables(report),
            "missed": sum(figure.met is False for figure in report.figures),
            "judged": sum(figure.met is not None for figure in report.figures),
        }
    return render(request, "review/measured.html", context)


@require_GET
@page()
def export(request: HttpRequest) -> HttpResponse:
    """The report as JSON; 404 if it was never made."""
    report = _report(request, _shown(request, reads.evaluations()))
    if report is None:
        raise NotFound("This evaluation was not run yet.")
    answer = JsonResponse(report.to_json(), json_dumps_params={"indent": 1})
    answer["Content-Disposition"] = f'attachment; filename="{report.name}.json"'
    return answer


def _shown(request: HttpRequest, known: list[reads.Evaluation]) -> reads.Evaluation:
    wanted = request.GET.get("report", known[0].name)
    found = next((each for each in known if each.name == wanted), None)
    if found is None:
        raise NotFound(f"There is no evaluation {wanted!r}; there are {', '.join(each.name for each in known)}.")
    return found


def _report(request: HttpRequest, shown: reads.Evaluation) -> Report | None:
    return shown.ours if request.GET.get("from") == OURS else shown.report
