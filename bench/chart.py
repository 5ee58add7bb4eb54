"""Line charts as SVG in the style of `sounder compare --chart`, for figures that are not curves of a run."""
import math
from xml.sax.saxutils import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1b1b1b")
WIDTH, LEFT, RIGHT, PLOT, LEGEND_TOP, LEGEND_ROW, SWATCH, LETTER = 760, 78, 18, 300, 34, 22, 26, 7.8
STYLE = """text{font-family:system-ui,sans-serif;fill:#1b1b1b}.title{font-size:15px;font-weight:600}
.label{font-size:13px;fill:#595959}.tick{font-size:12px;fill:#595959}.name{font-size:13px}
.axis{stroke:#595959;fill:none}.grid{stroke:#e3e3e3}.line{fill:none;stroke-width:2.2;stroke-linejoin:round}
.dashed{stroke-dasharray:7 4}.paper{fill:#fff}
""" + "".join(".l%d{stroke:%s}.b%d{fill:%s}" % (i, c, i, c) for i, c in enumerate(COLOURS)) + "\n"


def ticks(low, high, logarithmic):
    """1, 2 and 5 times powers of ten."""
    if logarithmic:
        found = [d * 10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for d in (1, 2, 5)]
        found = [t for t in found if low * 0.9999 <= t <= high * 1.0001]
        return found if len(found) <= 10 else [t for t in found if math.isclose(math.log10(t) % 1, 0, abs_tol=1e-9)]
    rough = (high - low) / 7
    power = 10 ** math.floor(math.log10(rough))
    step = power * next(d for d in (1, 2, 5, 10) if rough / power <= d)
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def chart(path, title, x_label, y_label, series, x_ticks, log_y=True, dashed=("ideal",)):
    """series: name → list of (x, y), drawn with marks, except "ideal"; dashed: names of dashed lines. The x axis is logarithmic, with
    ticks at x_ticks."""
    ys = [y for points in series.values() for _, y in points]
    low, high = min(ys), max(ys)
    if log_y:
        pad = (high / low) ** 0.04
        low, high = low / pad, high * pad
    else:
        low, high = 0, high * 1.05
    place = lambda value, first, last, log: math.log(value / first) / math.log(last / first) if log else (value - first) / (last - first)
    across = lambda x: LEFT + 14 + (WIDTH - LEFT - RIGHT - 28) * place(x, x_ticks[0], x_ticks[-1], True)
    out, legend, x, row = [], [], LEFT, 0
    for i, name in enumerate(series):
        width = SWATCH + 8 + LETTER * len(name) + 18
        if x > LEFT and x + width > WIDTH:
            x, row = LEFT, row + 1
        y = LEGEND_TOP + LEGEND_ROW * (row + 0.5)
        legend.append('<line class="line l%d%s" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="name" x="%.1f" y="%.1f">%s</text>'
                      % (i % 7, " dashed" if name in dashed else "", x, x + SWATCH, y, y, x + SWATCH + 8, y + 4.5, escape(name)))
        x += width
    top = LEGEND_TOP + LEGEND_ROW * (row + 1) + 12
    bottom = top + PLOT
    down = lambda y: bottom - PLOT * place(y, low, high, log_y)
    for t in ticks(low, high, log_y):
        out.append('<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="tick" text-anchor="end" x="%d" y="%.1f">%.6g</text>'
                   % (LEFT, WIDTH - RIGHT, down(t), down(t), LEFT - 8, down(t) + 4, t))
    for t in x_ticks:
        out.append('<line class="axis" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="tick" text-anchor="middle" x="%.1f" '
                   'y="%.1f">%.6g</text>' % (across(t), across(t), bottom, bottom + 5, across(t), bottom + 19, t))
    out.append('<path class="axis" d="M%d %.1fV%.1fH%d"/>' % (LEFT, top, bottom, WIDTH - RIGHT))
    out.append('<text class="label" text-anchor="middle" x="%d" y="%.1f">%s, logarithmic</text>'
               % ((LEFT + WIDTH - RIGHT) / 2, bottom + 42, escape(x_label)))
    out.append('<text class="label" text-anchor="middle" transform="translate(18 %.1f) rotate(-90)">%s%s</text>'
               % (top + PLOT / 2, escape(y_label), ", logarithmic" if log_y else ""))
    for i, (name, points) in enumerate(series.items()):
        out.append('<path class="line l%d%s" d="M%s"/>' % (i % 7, " dashed" if name in dashed else "",
                                                         " ".join("%.1f %.1f" % (across(x), down(y)) for x, y in points)))
        out += [] if name == "ideal" else ['<circle class="b%d" cx="%.1f" cy="%.1f" r="3.5"/>' % (i % 7, across(x), down(y)) for x, y in points]
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">' % (WIDTH, bottom + 54, WIDTH, bottom + 54)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([head, "<title>%s</title>" % escape(title), "<style>\n%s</style>" % STYLE,
                              '<rect class="paper" width="100%" height="100%"/>',
                              '<text class="title" x="%d" y="22">%s</text>' % (LEFT, escape(title)), *legend, *out, "</svg>", ""]))
