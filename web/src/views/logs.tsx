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
import { texts } from "../texts";

const levels = [
	{ value: "debug", text: texts.logs.debugAndAbove },
	{ value: "info", text: texts.logs.infoAndAbove },
	{ value: "warn", text: texts.logs.warningsAndErrors },
	{ value: "error", text: texts.logs.errors },
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
			title={texts.common.logs}
			lead={texts.logs.serverEnginesSayPrompts}
			actions={
				<>
					<State tail={tail} />
					<Button icon={isPaused ? "play" : "pause"} onClick={() => setPaused(!isPaused)}>
						{isPaused ? texts.common.resume : texts.common.pause}
					</Button>
				</>
			}
		>
			<Filters filter={filter} text={text} onText={setText} />
			<LogLines records={found} dropped={text === "" ? tail.dropped : 0} onOpen={setOpened} />
			<p class="hint">
				{text === "" ? texts.logs.lines(formatNumber(found.length)) : texts.logs.ofLines(formatNumber(found.length), formatNumber(tail.records.length))}
				{found.length === 0 && texts.logs.linesAppear}
				{tail.dropped > 0 && texts.logs.pageKeepsNewest(formatNumber(mostRecords))}
			</p>
			{opened && <Record record={opened} onClose={() => setOpened(null)} />}
		</View>
	);
}

const states: Record<LogTail["state"], [Tone, string]> = {
	live: ["good", texts.logs.following],
	connecting: ["busy", texts.common.connecting],
	broken: ["warning", texts.common.reconnecting],
	paused: ["neutral", texts.common.paused],
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
				label={texts.logs.level}
				hideLabel
				value={filter.level}
				onChange={(level) => setQuery({ level: level === "info" ? null : level })}
				choices={levels}
			/>
			<Select
				label={texts.common.model}
				hideLabel
				value={filter.model}
				onChange={(model) => setQuery({ model })}
				choices={[{ value: "", text: texts.common.allModels }, ...keys]}
			/>
			<TextField label={texts.logs.text} hideLabel type="search" placeholder={texts.logs.findInTheLines} value={text} onInput={onText} />
			<TextField
				label={texts.logs.requestId}
				hideLabel
				placeholder={texts.logs.requestId}
				value={filter.request}
				onInput={(request) => setQuery({ request: request.trim() })}
			/>
			{filter.instance && (
				<Button icon="close" onClick={() => setQuery({ instance: null })}>{texts.logs.instance(filter.instance)}</Button>
			)}
			<Checkbox
				label={texts.logs.outputOfEngines}
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
		<Dialog title={texts.logs.lineOfTheLog} wide onClose={onClose}>
			<Facts>
				<Fact name={texts.logs.time}>{formatTime(record.time)}</Fact>
				<Fact name={texts.logs.level}>{record.level}</Fact>
				<Fact name={texts.logs.logger}>{record.logger}</Fact>
			</Facts>
			<Plain text={record.message} class="call-text" label={texts.logs.message} />
			{Object.keys(fields).length > 0 && (
				<div class="body-text">
					<Plain text={JSON.stringify(fields, null, 2)} class="call-text" label={texts.logs.fields} />
					<Copy text={() => JSON.stringify(record, null, 2)} label={texts.logs.copyTheLine} />
				</div>
			)}
			{typeof request === "string" && (
				<p class="actions">
					<a class="button small" href={href("logs", "", { request, level: "debug" })} onClick={onClose}>{texts.logs.linesOfThisRequest}</a>
					<a class="button small" href={href("requests", "", { id: request })} onClick={onClose}>{texts.logs.theRequest}</a>
				</p>
			)}
		</Dialog>
	);
}
