import { useEffect, useState } from "preact/hooks";
import { useEvents } from "../core/events";
import { formatBytes } from "../core/format";
import { ApiError, get, messageOf, post, send } from "../core/http";
import { useResource } from "../core/resource";
import { href } from "../core/router";
import { lacks, useCan } from "../core/session";
import { readEvents } from "../core/sse";
import type { DownloadJob, Health, Overview, Variant, Variants } from "../core/types";
import { Button } from "../ui/Button";
import { Key } from "../ui/Key";
import { Progress } from "../ui/Meter";
import { Badge, Failure } from "../ui/states";
import { Jobs } from "../views/jobs";
import { setModel } from "./chat";
import { suggestionsFor } from "./suggestions";
import { texts } from "../texts";

/** What is missing before one can chat: an engine, and a model, each to be had by one click. */
export function FirstSteps({ hasModels }: { hasModels: boolean }) {
	const health = useResource<Health>("/api/v1/health", { accept: [503], every: 5_000 });
	const disabledFor = useCan("models.manage") ? null : lacks("models.manage");
	const lacksEngine = health.data?.reasons?.includes("no_engine") ?? false;
	return (
		<div class="first-steps">
			{lacksEngine && <GetEngine disabledFor={disabledFor} onDone={health.reload} />}
			{!hasModels && <GetModel disabledFor={disabledFor} />}
		</div>
	);
}

function GetEngine({ disabledFor, onDone }: { disabledFor: string | null; onDone: () => void }) {
	const [state, setState] = useState<{ doing: string; share: number } | null>(null);
	const [error, setError] = useState<Error | null>(null);
	const install = async () => {
		setError(null);
		setState({ doing: texts.firstSteps.askingNewestRelease, share: 0 });
		try {
			await stream((doing, share) => setState({ doing, share }));
			onDone();
		} catch (e) {
			setError(e as Error);
		}
		setState(null);
	};
	return (
		<section class="card stack" aria-label={texts.common.engine}>
			<h2>{texts.firstSteps.getTheEngine}</h2>
			<p class="muted">{texts.firstSteps.llamaCppRunsModels}</p>
			{error && <Failure error={error} />}
			{state ? (
				<>
					<p class="hint">{state.doing}</p>
					<Progress label={state.doing} value={state.share} />
				</>
			) : (
				<div>
					<Button kind="primary" icon="downloads" disabledFor={disabledFor} onClick={() => void install()}>{texts.firstSteps.getLlamaCpp}</Button>
				</div>
			)}
		</section>
	);
}

/** Has the server install the engine, and tells of the progress. */
async function stream(onProgress: (doing: string, share: number) => void): Promise<void> {
	const response = await send("POST", "/api/v1/runtime", { body: { engine: "llama.cpp" }, headers: { Accept: "text/event-stream" } });
	for await (const { event, data } of readEvents(response)) {
		const d = JSON.parse(data) as { doing?: string; percent?: number; error?: { message: string; code?: string } };
		if (event === "runtime.progress") onProgress(d.doing ?? "", (d.percent ?? 0) / 100);
		if (event === "runtime.end") return;
		if (d.error) throw new ApiError(200, d.error.message, d.error.code);
	}
	throw new ApiError(0, texts.firstSteps.connectionLostBeforeEngine);
}

function GetModel({ disabledFor }: { disabledFor: string | null }) {
	const overview = useResource<Overview>("/api/v1/ps");
	const [wanted, setWanted] = useState("");
	useEvents(["download.completed"], ({ job }) => {
		const { model } = job as DownloadJob;
		if (model.split("@")[0] === wanted) setModel(model);
	});
	return (
		<section class="card stack" aria-label={texts.common.model}>
			<h2>{texts.firstSteps.getAModel}</h2>
			<p class="muted">{texts.firstSteps.fitMachineMoreUnder(<a href={href("downloads")}>{texts.common.downloads}</a>)}</p>
			{overview.error && <Failure error={overview.error} retry={overview.reload} />}
			<ul class="list">
				{overview.data &&
					suggestionsFor(overview.data).map((s) => <Suggested key={s.model} of={s} disabledFor={disabledFor} onGet={() => setWanted(s.model)} />)}
			</ul>
			<Jobs disabledFor={disabledFor} />
		</section>
	);
}

interface SuggestedProps {
	of: { model: string; about: string; size: number };
	disabledFor: string | null;
	onGet: () => void;
}

function Suggested({ of: { model, about, size }, disabledFor, onGet }: SuggestedProps) {
	const [best, setBest] = useState<Variant | null>(null);
	const [trouble, setTrouble] = useState("");
	useEffect(() => {
		if (disabledFor) return;
		const ending = new AbortController();
		get<Variants>("/api/v1/models/variants", { query: { model }, signal: ending.signal }).then(
			({ variants }) => setBest(variants.find((v) => v.recommended) ?? variants[0] ?? null),
			(error) => !ending.signal.aborted && setTrouble(messageOf(error)),
		);
		return () => ending.abort();
	}, [model, disabledFor]);
	const download = async () => {
		onGet();
		await post("/api/v1/models/download", { model: best ? `${model}@${best.quantization}` : model });
	};
	return (
		<li class="row between">
			<span class="stacked">
				<strong>
					<Key of={model} />
				</strong>
				<span class="muted hint">
					{best ? `${formatBytes(best.size_bytes)}, ${best.quantization}` : texts.firstSteps.aboutGibSize(size)}; {about}
				</span>
				{trouble && <span class="error-text">{trouble}</span>}
			</span>
			<span class="row">
				{best && (best.fits_memory ? <Badge tone="good">{texts.common.fits}</Badge> : <Badge tone="warning">{texts.firstSteps.tight}</Badge>)}
				<Button kind="primary" small icon="downloads" disabledFor={disabledFor} onClick={download} aria-label={texts.firstSteps.getAndChatWith(model)}>{texts.firstSteps.getAndChat}</Button>
			</span>
		</li>
	);
}
