import { formatBytes } from "../core/format";
import type { Companion } from "../core/types";
import { Table } from "../ui/Table";
import { texts } from "../texts";

/** Files that belong to models, such as projectors and drafters. */
export function Companions({ of: all }: { of: readonly Companion[] }) {
	return (
		<Table
			label={texts.common.filesOfModels}
			rows={all}
			rowKey={(c) => c.path}
			columns={[
				{ title: texts.common.path, name: true, render: (c) => <span class="mono">{c.path}</span> },
				{ title: texts.common.role, render: (c) => c.role },
				{ title: texts.common.models, minor: true, render: (c) => c.models.join(", ") || "–" },
				{ title: texts.common.size, numeric: true, render: (c) => formatBytes(c.size_bytes) },
			]}
		/>
	);
}
