import { memo } from "preact/compat";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatTime } from "../core/format";
import type { LogRecord } from "../core/types";
import { visible } from "../chat/text";
import { lineOf } from "./logtail";
import { texts } from "../texts";

const height = 24; // pixels of a line; the style has the same
const beyond = 20; // lines that are rendered above and below those in view

interface Props {
	records: readonly LogRecord[];
	/** How many records have been dropped at the beginning since they were first shown. */
	dropped: number;
	onOpen: (record: LogRecord) => void;
}

/** Lines of the log. Only those in view are in the document. Its reader stays at the end, unless they scroll up. */
export function LogLines({ records, dropped, onOpen }: Props) {
	const box = useRef<HTMLDivElement>(null);
	const isAtEnd = useRef(true);
	const before = useRef(dropped);
	const [top, setTop] = useState(0);
	const [room, setRoom] = useState(600);

	useLayoutEffect(() => {
		const element = box.current;
		if (!element) return;
		if (isAtEnd.current) element.scrollTop = element.scrollHeight;
		else if (dropped !== before.current) element.scrollTop -= (dropped - before.current) * height;
		before.current = dropped;
	}, [records, dropped]);
	useEffect(() => {
		const element = box.current;
		if (!element) return;
		const observer = new ResizeObserver(() => setRoom(element.clientHeight));
		observer.observe(element);
		return () => observer.disconnect();
	}, []);

	const first = Math.max(0, Math.min(Math.floor(top / height), records.length) - beyond);
	const shown = records.slice(first, first + Math.ceil(room / height) + 2 * beyond);
	return (
		<div
			ref={box}
			class="log"
			role="region"
			aria-label={texts.logs.logLines(records.length)}
			tabIndex={0}
			onScroll={(e) => {
				const { scrollTop, scrollHeight, clientHeight } = e.currentTarget;
				isAtEnd.current = scrollTop + clientHeight >= scrollHeight - height;
				setTop(scrollTop);
			}}
		>
			<div class="log-lines" style={{ height: `${records.length * height}px` }}>
				<div class="log-window" style={{ transform: `translateY(${first * height}px)` }}>
					{shown.map((r) => (
						<Line key={r.id} record={r} onOpen={onOpen} />
					))}
				</div>
			</div>
		</div>
	);
}

const most = 400; // characters of a line; opening it shows the rest

const Line = memo(function Line({ record, onOpen }: { record: LogRecord; onOpen: (record: LogRecord) => void }) {
	const { text, fields } = lineOf(record);
	return (
		<button type="button" class={"log-line " + record.level} onClick={() => onOpen(record)}>
			<time>{formatTime(record.time)}</time>
			<span class="log-level">{record.level}</span>
			<span class="log-text">
				{visible(text.slice(0, most))} <span class="muted">{visible(fields.slice(0, most))}</span>
			</span>
		</button>
	);
});
