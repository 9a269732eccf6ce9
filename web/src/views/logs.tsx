import { useMemo, useState } from "preact/hooks";
import { LogLines } from "../activity/loglines";
import { contains, mostRecords, useLogTail, type LogFilter, type LogTail } from "../activity/logtail";
import { Plain } from "../chat/markdown";
import { formatNumber, formatTime } from "../core/format";
import { useResource } from "../core/resource";
import { href, setQuery, useRoute } from "../core/router";
import type { LogRecord, Models } from "../core/types";
import { Button } from "../ui/Button";
import { Copy } from "../ui/Copy";
import { Dialog } from "../ui/Dialog";
import { Checkbox, Select, TextField } from "../ui/Field";
import { Badge, Fact, Facts, type Tone } from "../ui/states";
import { View } from "../ui/View";

const levels = [
	{ value: "debug", text: "Debug and above" },
	{ value: "info", text: "Info and above" },
	{ value: "warn", text: "Warnings and errors" },
	{ value: "error", text: "Errors" },
];

export function Logs() {
	const { query } = useRoute();
	const filter: LogFilter = {
		level: query.get("level") || "info",
		engine: query.get("engine") === "true",
		model: query.get("model") ?? "",
		instance: query.get("instance") ?? "",
		request: query.get("request") ?? "",
	};
	const [text, setText] = useState("");
	const [isPaused, setPaused] = useState(false);
	const [opened, setOpened] = useState<LogRecord | null>(null);
	const tail = useLogTail(filter, isPaused);
	const found = useMemo(() => (text === "" ? tail.records : tail.records.filter((r) => contains(r, text))), [tail.records, text]);
	return (
		<View
			title="Logs"
			lead="What the server and its engines say. Prompts, answers and tokens aren't in it."
			actions={
				<>
					<State tail={tail} />
					<Button icon={isPaused ? "play" : "pause"} onClick={() => setPaused(!isPaused)}>
						{isPaused ? "Resume" : "Pause"}
					</Button>
				</>
			}
		>
			<Filters filter={filter} text={text} onText={setText} />
			<LogLines records={found} dropped={text === "" ? tail.dropped : 0} onOpen={setOpened} />
			<p class="hint">
				{text === "" ? `${formatNumber(found.length)} lines` : `${formatNumber(found.length)} of ${formatNumber(tail.records.length)} lines`}
				{tail.dropped > 0 && `; the page keeps the newest ${formatNumber(mostRecords)}`}
			</p>
			{opened && <Record record={opened} onClose={() => setOpened(null)} />}
		</View>
	);
}

const states: Record<LogTail["state"], [Tone, string]> = {
	live: ["good", "Following"],
	connecting: ["busy", "Connecting"],
	broken: ["warning", "Reconnecting"],
	paused: ["neutral", "Paused"],
};

function State({ tail }: { tail: LogTail }) {
	const [tone, text] = states[tail.state];
	return (
		<span role="status">
			<Badge tone={tone}>{text}</Badge>
		</span>
	);
}

function Filters({ filter, text, onText }: { filter: LogFilter; text: string; onText: (text: string) => void }) {
	const models = useResource<Models>("/api/v1/models");
	const keys = [...new Set([...(models.data?.models ?? []).map((m) => m.key), filter.model].filter(Boolean))];
	return (
		<div class="filters">
			<Select
				label="Level"
				hideLabel
				value={filter.level}
				onChange={(level) => setQuery({ level: level === "info" ? null : level })}
				choices={levels}
			/>
			<Select
				label="Model"
				hideLabel
				value={filter.model}
				onChange={(model) => setQuery({ model })}
				choices={[{ value: "", text: "All models" }, ...keys]}
			/>
			<TextField label="Text" hideLabel type="search" placeholder="Find in the lines" value={text} onInput={onText} />
			<TextField
				label="Request id"
				hideLabel
				placeholder="Request id"
				value={filter.request}
				onInput={(request) => setQuery({ request: request.trim() })}
			/>
			{filter.instance && (
				<Button icon="close" onClick={() => setQuery({ instance: null })}>
					Instance {filter.instance}
				</Button>
			)}
			<Checkbox
				label="Output of engines"
				checked={filter.engine || filter.level === "debug"}
				disabled={filter.level === "debug"}
				onChange={(engine) => setQuery({ engine: engine ? "true" : null })}
			/>
		</div>
	);
}

/** All of a record. */
function Record({ record, onClose }: { record: LogRecord; onClose: () => void }) {
	const fields = (record.fields ?? {}) as Record<string, unknown>;
	const request = fields["request_id"] ?? fields["request"];
	return (
		<Dialog title="Line of the log" wide onClose={onClose}>
			<Facts>
				<Fact name="Time">{formatTime(record.time)}</Fact>
				<Fact name="Level">{record.level}</Fact>
				<Fact name="Logger">{record.logger}</Fact>
			</Facts>
			<Plain text={record.message} class="call-text" label="Message" />
			{Object.keys(fields).length > 0 && (
				<div class="body-text">
					<Plain text={JSON.stringify(fields, null, 2)} class="call-text" label="Fields" />
					<Copy text={() => JSON.stringify(record, null, 2)} label="Copy the line" />
				</div>
			)}
			{typeof request === "string" && (
				<p class="actions">
					<a class="button small" href={href("logs", "", { request, level: "debug" })} onClick={onClose}>
						Lines of this request
					</a>
					<a class="button small" href={href("requests", "", { id: request })} onClick={onClose}>
						The request
					</a>
				</p>
			)}
		</Dialog>
	);
}
