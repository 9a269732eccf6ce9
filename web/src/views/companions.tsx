import { formatBytes } from "../core/format";
import type { Companion } from "../core/types";
import { Table } from "../ui/Table";

/** Files that belong to models, such as projectors and drafters. */
export function Companions({ of: all }: { of: readonly Companion[] }) {
	return (
		<Table
			label="Files of models"
			rows={all}
			rowKey={(c) => c.path}
			columns={[
				{ title: "Path", name: true, render: (c) => <span class="mono">{c.path}</span> },
				{ title: "Role", render: (c) => c.role },
				{ title: "Models", minor: true, render: (c) => c.models.join(", ") || "–" },
				{ title: "Size", numeric: true, render: (c) => formatBytes(c.size_bytes) },
			]}
		/>
	);
}
