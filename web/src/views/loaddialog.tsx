import { useEffect, useState } from "preact/hooks";
import { ApiError, isAbort, messageOf, post, send } from "../core/http";
import { formatBytes, formatDuration, formatNumber } from "../core/format";
import { readEvents } from "../core/sse";
import type { LoadEstimate, Loaded, Model } from "../core/types";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Checkbox, Select, TextField } from "../ui/Field";
import { Progress } from "../ui/Meter";
import { Failure, Loading, Note } from "../ui/states";
import { announce, toast } from "../ui/toast";
import { Estimate } from "./estimate";
import { texts } from "../texts";

const usual = 32_768; // tokens: what the server chooses at most

/** What is typed into the dialog; empty: as the server chooses. */
const unset = { context_length: "", parallel: "", eval_batch_size: "", num_experts: "", ttl: "", identifier: "", flash_attention: "", offload: "" };
type Input = typeof unset;
type NumberName = "context_length" | "parallel" | "eval_batch_size" | "num_experts" | "ttl";

const numbers: readonly NumberName[] = ["context_length", "parallel", "eval_batch_size", "num_experts", "ttl"];

const most = 2 ** 31 - 1;

/** The body of a load, and what is wrong with the input. */
function read(model: Model, input: Input, pinned: boolean) {
	const body: Record<string, unknown> = { model: model.key };
	const wrong: Partial<Record<keyof Input, string>> = {};
	for (const name of numbers) {
		const text = input[name].trim();
		if (!text) continue;
		const least = name === "ttl" ? -1 : 1;
		if (!/^-?\d+$/.test(text) || Number(text) < least) wrong[name] = texts.loadDialog.enterWholeNumberLeast(least);
		else if (Number(text) > most) wrong[name] = texts.loadDialog.enterAtMost(formatNumber(most));
		else body[name] = Number(text);
	}
	if (input.flash_attention) body["flash_attention"] = input.flash_attention === "on";
	if (input.offload) body["offload_kv_cache_to_gpu"] = input.offload === "on";
	if (input.identifier.trim()) body["identifier"] = input.identifier.trim();
	if (pinned) body["pinned"] = true;
	return { body, wrong };
}

const onOff = [
	{ value: "", text: texts.loadDialog.enginesChoice },
	{ value: "on", text: texts.common.on },
	{ value: "off", text: texts.common.off },
];

export function LoadDialog({ model, onClose }: { model: Model; onClose: () => void }) {
	const [input, setInput] = useState(unset);
	const [pinned, setPinned] = useState(false);
	const [progress, setProgress] = useState<number | null | undefined>(undefined); // undefined: it isn't being loaded
	const [error, setError] = useState<ApiError | null>(null);
	const { body, wrong } = read(model, input, pinned);
	const isValid = Object.keys(wrong).length === 0;
	const estimate = useEstimate(body, isValid && progress === undefined);
	const set = (name: keyof Input) => (value: string) => {
		setError(null);
		setInput((all) => ({ ...all, [name]: value }));
	};
	const field = (name: keyof Input) => ({ value: input[name], onInput: set(name), error: wrong[name] ?? (error?.param === name ? error.message : null) });
	const load = async () => {
		if (!isValid || progress !== undefined) return;
		setProgress(null);
		setError(null);
		try {
			const loaded = await stream(body, setProgress);
			toast(texts.loadDialog.isLoadedAfter(loaded.instance_id, formatDuration(loaded.load_time_seconds), loaded.placement ?? ""));
			onClose();
		} catch (failure) {
			if (isAbort(failure)) return;
			setError(failure instanceof ApiError ? failure : new ApiError(0, messageOf(failure)));
			setProgress(undefined);
		}
	};
	const isLoading = progress !== undefined;
	return (
		<Dialog
			title={texts.common.loadKey(model.key)}
			wide
			onClose={onClose}
			onSubmit={() => void load()}
			actions={
				<>
					<Button onClick={onClose}>{isLoading ? texts.loadDialog.continueInTheBackground : texts.common.cancel}</Button>
					<Button type="submit" kind="primary" disabledFor={isLoading ? texts.loadDialog.itIsBeingLoaded : isValid ? null : texts.loadDialog.correctTheFieldsFirst}>{texts.common.load}</Button>
				</>
			}
		>
			{isLoading ? <Progress label={texts.loadDialog.loadingKey(model.key)} value={progress ?? null} /> : <EstimateOf state={estimate} />}
			{error && !(error.param in input) && <Failure error={error} />}
			<fieldset class="bare fields" disabled={isLoading}>
				<legend class="visually-hidden">{texts.loadDialog.settingsOfTheLoad}</legend>
				<TextField label={texts.common.contextLength} inputMode="numeric" placeholder={texts.loadDialog.longestFitsUp(formatNumber(Math.min(model.max_context_length || usual, usual)))} hint={texts.loadDialog.tokensForOneRequest(model.max_context_length > 0 ? formatNumber(model.max_context_length) : "")} {...field("context_length")} />
				<TextField label={texts.common.requestsAtATime} inputMode="numeric" placeholder={texts.common.chosenByMemory} hint={texts.loadDialog.eachContextOwn} {...field("parallel")} />
				<TextField label={texts.common.unloadAfter} inputMode="numeric" placeholder={texts.common.never} hint={texts.loadDialog.ttlHint} {...field("ttl")} />
				<TextField label={texts.loadDialog.identifier} placeholder={model.key} hint={texts.loadDialog.idRequestsIfYou} {...field("identifier")} />
				<Select label={texts.loadDialog.flashAttention} value={input.flash_attention} onChange={set("flash_attention")} choices={onOff} />
				<Select label={texts.loadDialog.kvCacheGpu} value={input.offload} onChange={set("offload")} choices={onOff} />
				<TextField label={texts.loadDialog.batchSize} inputMode="numeric" placeholder={texts.loadDialog.enginesChoice} hint={texts.loadDialog.promptTokensEvaluatedTime} {...field("eval_batch_size")} />
				<TextField label={texts.loadDialog.activeExperts} inputMode="numeric" placeholder={texts.loadDialog.asTrained} hint={texts.loadDialog.mixtureExperts} {...field("num_experts")} />
				<Checkbox label={texts.common.pin} hint={texts.loadDialog.neverUnloadAnotherModel} checked={pinned} onChange={setPinned} />
			</fieldset>
		</Dialog>
	);
}

/** Loads a model, and tells of the progress. */
async function stream(body: object, onProgress: (share: number) => void): Promise<Loaded> {
	const response = await send("POST", "/api/v1/models/load", { body, headers: { Accept: "text/event-stream" } });
	for await (const { data } of readEvents(response)) {
		const event = JSON.parse(data) as { type: string; progress?: number; result?: Loaded; error?: { message: string; code?: string; param?: string } };
		if (event.type === "model_load.progress" && event.progress !== undefined) onProgress(event.progress);
		if (event.type === "model_load.end" && event.result) return event.result;
		if (event.error) throw new ApiError(200, event.error.message, event.error.code, event.error.param ?? "");
	}
	throw new ApiError(0, texts.loadDialog.connectionLostWhileModel);
}

interface Estimated {
	estimate: LoadEstimate | null;
	error: Error | null;
}

const settleTime = 250; // milliseconds without typing before the server is asked

/** What the load would take with the settings as they are. */
function useEstimate(body: Record<string, unknown>, isWanted: boolean): Estimated {
	const [state, setState] = useState<Estimated>({ estimate: null, error: null });
	const { pinned: _, ...asked } = body;
	const key = JSON.stringify(asked);
	useEffect(() => {
		if (!isWanted) return;
		const ending = new AbortController();
		const timer = setTimeout(() => {
			post<LoadEstimate>("/api/v1/models/load", { ...asked, estimate_only: true }, { signal: ending.signal }).then(
				(estimate) => {
					setState({ estimate, error: null });
					announce(texts.loadDialog.wouldTakeMemory(formatBytes(estimate.memory.total_bytes), estimate.fits));
				},
				(error: Error) => !isAbort(error) && setState((s) => ({ ...s, error })),
			);
		}, settleTime);
		return () => {
			clearTimeout(timer);
			ending.abort();
		};
	}, [key, isWanted]);
	return state;
}

function EstimateOf({ state: { estimate, error } }: { state: Estimated }) {
	if (error instanceof ApiError && error.code === "not_supported") return <Note>{error.message}</Note>; // such as of another server's model
	if (error) return <Failure error={error} />;
	return estimate ? <Estimate of={estimate} /> : <Loading />;
}
