import type { ComponentChildren } from "preact";

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

export function Table<T>({ label, columns, rows, rowKey, rowClass, empty }: TableProps<T>) {
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
					{rows.map((row) => (
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
		</div>
	);
}
