import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { formatCompact, formatNumber } from "../core/format";
import { useStore } from "../core/store";
import { theme } from "../ui/theme";
import type { Plotted } from "./usagedata";
import { texts } from "../texts";

const height = 260; // pixels

/** Bars over time, a colour for each name. A table with the same figures stands below it. */
export function Plot({ data, label, unit, byHour }: { data: Plotted; label: string; unit: string; byHour: boolean }) {
	const box = useRef<HTMLDivElement>(null);
	const [at, setAt] = useState<number | null>(null);
	const chosenTheme = useStore(theme);
	const dark = useDark();

	useEffect(() => {
		const element = box.current;
		if (!element) return;
		const plot = new uPlot(optionsOf(data, element, byHour, setAt), stacked(data), element);
		const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
		observer.observe(element);
		return () => {
			observer.disconnect();
			plot.destroy();
		};
	}, [data, byHour, chosenTheme, dark]);

	return (
		<figure class="plot">
			<div ref={box} role="img" aria-label={label} />
			<figcaption>
				<span class="plot-time tabular">{at === null ? texts.usage.inAll : timeText(data.times[at] ?? 0, byHour)}</span>
				<ul>
					{data.series.map((s, i) => (
						<li key={s.name}>
							<span class={`swatch shade-${i % 6}`} />
							{s.name} <span class="tabular muted">{formatNumber(at === null ? s.total : s.values[at])}</span>
						</li>
					))}
				</ul>
				<span class="muted">{unit}</span>
			</figcaption>
		</figure>
	);
}

function useDark(): boolean {
	const [query] = useState(() => matchMedia("(prefers-color-scheme: dark)"));
	const [isDark, setDark] = useState(query.matches);
	useEffect(() => {
		const follow = () => setDark(query.matches);
		query.addEventListener("change", follow);
		return () => query.removeEventListener("change", follow);
	}, [query]);
	return isDark;
}

export function timeText(seconds: number, byHour: boolean): string {
	const date = new Date(seconds * 1000);
	if (!byHour) return date.toLocaleDateString(undefined, { timeZone: "UTC", year: "numeric", month: "short", day: "numeric" });
	return date.toLocaleString(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

/** Returns the series on top of each other: uPlot draws each from the bottom on, so the whole comes first. */
function stacked({ times, series }: Plotted): uPlot.AlignedData {
	const sum = times.map(() => 0);
	const layers = series.map((s) => s.values.map((v, i) => (sum[i] = (sum[i] ?? 0) + v)));
	return [times, ...layers.reverse()];
}

function optionsOf({ series }: Plotted, element: HTMLElement, byHour: boolean, onCursor: (at: number | null) => void): uPlot.Options {
	const colour = colours(element);
	const text = colour("--muted");
	const step = byHour ? 3600 : 86_400;
	const axis = { stroke: text, font: "12px system-ui", ticks: { show: false }, grid: { stroke: colour("--line"), width: 1 } };
	return {
		width: element.clientWidth || 600,
		height,
		// Days are UTC's; hours are shown in the reader's own time.
		tzDate: (seconds) => (byHour ? new Date(seconds * 1000) : uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC")),
		legend: { show: false },
		cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
		hooks: { setCursor: [(u) => onCursor(u.cursor.idx ?? null)] },
		scales: { x: { range: (_, min, max) => [min - step / 2, max + step / 2] }, y: { range: (_, __, max) => [0, Math.max(max, 1) * 1.05] } },
		axes: [
			{ ...axis, grid: { show: false } },
			{ ...axis, size: 56, values: (_, ticks) => ticks.map((v) => formatCompact(v)) },
		],
		series: [
			{},
			...series
				.map((s, i) => {
					const fill = colour(`--shade-${i % 6}`);
					return {
						label: s.name,
						fill,
						stroke: fill,
						width: 0,
						paths: uPlot.paths.bars?.({ size: [0.75, 48] }),
						points: { show: false },
					} satisfies uPlot.Series;
				})
				.reverse(),
		],
	};
}

/** Returns the colours of the style as they are here and now: a canvas can't use variables. */
function colours(element: HTMLElement): (name: string) => string {
	return (name) => {
		const probe = document.createElement("span");
		probe.style.color = `var(${name})`;
		element.append(probe);
		const colour = getComputedStyle(probe).color;
		probe.remove();
		return colour;
	};
}
