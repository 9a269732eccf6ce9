import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatNumber } from "../core/format";
import { Button } from "./Button";
import { texts } from "../texts";

export interface Column<T> {
	title: string;
	render: (row: T) => ComponentChildren;
	/** Numbers stand at the right. */
	numeric?: boolean;
	/** It has names, which may be long: they are broken into lines. */
	name?: boolean;
	/** Left out where there is little room; "phone": only where there is very little. */
	minor?: boolean | "phone";
	/** Read by screen readers only. */
	hideTitle?: boolean;
	/** For sorting by it. */
	sort?: { direction: "ascending" | "descending" | null; onSort: () => void };
}

export interface TableProps<T> {
	label: string;
	columns: readonly Column<T>[];
	rows: readonly T[];
	rowKey: (row: T) => string;
	rowClass?: (row: T) => string | undefined;
	empty?: ComponentChildren;
}

const atFirst = 50; // rows; others follow as one comes to them

export function Table<T>({ label, columns, rows, rowKey, rowClass, empty }: TableProps<T>) {
	const [most, setMost] = useState(atFirst);
	useEffect(() => setMost(atFirst), [rows.length === 0]);
	if (rows.length === 0 && empty) return <>{empty}</>;
	const classOf = (c: Column<T>) => [c.numeric && "numeric", c.name && "name", c.minor && (c.minor === "phone" ? "minor-phone" : "minor")].filter(Boolean).join(" ") || undefined;
	return (
		<div class="table" role="region" aria-label={label} tabIndex={0}>
			<table>
				<thead>
					<tr>
						{columns.map((c) => (
							<th key={c.title} scope="col" class={classOf(c)} aria-sort={c.sort?.direction ?? undefined}>
								{c.sort ? (
									<button type="button" class="sort" onClick={c.sort.onSort}>
										{c.title}
										<span aria-hidden="true">{c.sort.direction === "ascending" ? " ↑" : c.sort.direction === "descending" ? " ↓" : ""}</span>
									</button>
								) : (
									<span class={c.hideTitle ? "visually-hidden" : undefined}>{c.title}</span>
								)}
							</th>
						))}
					</tr>
				</thead>
				<tbody>
					{rows.slice(0, most).map((row) => (
						<tr key={rowKey(row)} class={rowClass?.(row)}>
							{columns.map((c) => (
								<td key={c.title} class={classOf(c)}>
									{c.render(row)}
								</td>
							))}
						</tr>
					))}
				</tbody>
			</table>
			{rows.length > most && <More rest={rows.length - most} onMore={() => setMost(most + atFirst)} />}
		</div>
	);
}

/** The end of what is shown of a table: when it is seen, more is shown. */
function More({ rest, onMore }: { rest: number; onMore: () => void }) {
	const at = useRef<HTMLDivElement>(null);
	const latest = useRef(onMore);
	latest.current = onMore;
	useEffect(() => {
		const seen = new IntersectionObserver(([e]) => e?.isIntersecting && latest.current(), { rootMargin: "300px" });
		if (at.current) seen.observe(at.current);
		return () => seen.disconnect();
	}, [rest]);
	return (
		<div class="more" ref={at}>
			<Button kind="quiet" onClick={onMore}>{texts.tables.moreRest(formatNumber(rest))}</Button>
		</div>
	);
}
