import { useEffect, useState } from "preact/hooks";
import { formatBytes } from "../core/format";
import { get, isAbort, post } from "../core/http";
import type { DownloadPreview, Variant, Variants } from "../core/types";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Badge, Failure, Loading, Note } from "../ui/states";
import { toast } from "../ui/toast";
import { texts } from "../texts";

interface State<T> {
	data: T | null;
	error: Error | null;
}

/** Fetches something for a dialog, and again when the key changes. */
function useFetched<T>(key: string, fetch: (signal: AbortSignal) => Promise<T>): State<T> {
	const [state, setState] = useState<State<T>>({ data: null, error: null });
	useEffect(() => {
		const ending = new AbortController();
		setState({ data: null, error: null });
		fetch(ending.signal).then(
			(data) => !ending.signal.aborted && setState({ data, error: null }),
			(error: Error) => !isAbort(error) && setState({ data: null, error }),
		);
		return () => ending.abort();
	}, [key]);
	return state;
}

/** Chooses what to download of a model. */
export function DownloadDialog({ model, onClose }: { model: string; onClose: () => void }) {
	const variants = useFetched(model, (signal) => get<Variants>("/api/v1/models/variants", { query: { model }, signal }));
	const [chosen, setChosen] = useState<string | null>(null);
	const all = variants.data?.variants ?? [];
	const quantization = chosen ?? (all.find((v) => v.recommended) ?? all.find((v) => v.fits_memory !== false) ?? all[0])?.quantization ?? "";
	const body = withQuantization(model, quantization);
	const isReady = variants.data !== null || variants.error !== null;
	const preview = useFetched<DownloadPreview>(JSON.stringify([body, isReady]), (signal) =>
		isReady ? post<DownloadPreview>("/api/v1/models/download", { ...body, estimate_only: true }, { signal }) : new Promise<never>(() => undefined),
	);
	const p = preview.data;
	const reason = reasonAgainst(p);
	const start = async () => {
		if (reason) return;
		const started = await post<{ status: string }>("/api/v1/models/download", body);
		toast(started.status === "already_downloaded" ? texts.downloadDialog.itIsDownloadedAlready : texts.downloadDialog.isBeingDownloaded(p?.model ?? model));
		onClose();
	};
	return (
		<Dialog
			title={texts.common.downloadModel(model)}
			wide
			onClose={onClose}
			actions={
				<>
					<Button onClick={onClose}>{texts.common.cancel}</Button>
					<Button kind="primary" disabledFor={reason} onClick={start}>
						{p?.status === "paused" ? texts.common.resume : texts.downloadDialog.download}
					</Button>
				</>
			}
		>
			{variants.error && <Failure error={variants.error} />}
			{!variants.data && !variants.error && <Loading />}
			{all.length > 0 && <Choices all={all} chosen={quantization} onChoose={setChosen} />}
			{preview.error ? <Failure error={preview.error} /> : isReady && (p ? <Preview of={p} /> : <Loading />)}
		</Dialog>
	);
}

/** The body of a request for one quantization. URLs have it in a field of its own, names after an @. */
function withQuantization(model: string, quantization: string): { model: string; quantization?: string } {
	if (!quantization) return { model };
	if (/^https?:/i.test(model)) return { model, quantization };
	return { model: `${model.replace(/@.*$/, "")}@${quantization}` };
}

/** Why a download can't be begun; null: it can. */
function reasonAgainst(p: DownloadPreview | null): string | null {
	if (!p) return texts.downloadDialog.takesKnownYet;
	if (p.status === "already_downloaded") return texts.downloadDialog.itIsDownloadedAlready;
	if (p.status === "downloading") return texts.downloadDialog.itIsBeingDownloaded;
	return p.fits_disk ? null : texts.downloadDialog.enoughRoomDisk;
}

function Choices({ all, chosen, onChoose }: { all: readonly Variant[]; chosen: string; onChoose: (quantization: string) => void }) {
	return (
		<fieldset class="bare">
			<legend class="visually-hidden">{texts.common.quantization}</legend>
			<ul class="variants">
				{all.map((v) => (
					<li key={v.format + v.quantization}>
						<label class={v.quantization === chosen ? "chosen" : undefined}>
							<input type="radio" name="quantization" value={v.quantization} checked={v.quantization === chosen} onChange={() => onChoose(v.quantization)} />
							<span class="name">{v.quantization}</span>
							<span class="tabular">{formatBytes(v.size_bytes)}</span>
							<span class="row tight">
								{v.recommended && <Badge tone="busy">{texts.common.recommended}</Badge>}
								{v.fits_memory === false && <Badge tone="bad">{texts.downloadDialog.tooLargeMemory}</Badge>}
								{v.fits_disk === false && <Badge tone="bad">{texts.downloadDialog.noRoomDisk}</Badge>}
								{v.fits_memory && v.fits_disk !== false && <Badge tone="good">{texts.common.fits}</Badge>}
								{v.downloaded && <Badge>{texts.common.downloaded}</Badge>}
								{v.format !== "gguf" && <Badge>{v.format.toUpperCase()}</Badge>}
							</span>
						</label>
					</li>
				))}
			</ul>
		</fieldset>
	);
}

function Preview({ of: p }: { of: DownloadPreview }) {
	return (
		<div class="stack">
			<p>
				{p.status === "already_downloaded" ? (
					<>{texts.downloadDialog.isDownloadedAlready(<strong>{p.model}</strong>)}</>
				) : (
					<>
						{texts.downloadDialog.becomes(<strong>{p.model}</strong>, formatBytes(p.left_bytes))}
						{p.left_bytes < p.total_size_bytes && texts.downloadDialog.ofTotal(formatBytes(p.total_size_bytes))}
						{p.disk_free_bytes !== null && texts.downloadDialog.freeOnTheDisk(formatBytes(p.disk_free_bytes))}.
					</>
				)}
			</p>
			{!p.fits_disk && <Note kind="error">{texts.downloadDialog.enoughRoomDiskDelete}</Note>}
			<details>
				<summary>{p.files.length === 1 ? texts.downloadDialog.oneFile : texts.downloadDialog.files(p.files.length)}</summary>
				<ul>
					{p.files.map((f) => (
						<li key={f.path} class="row between">
							<span class="mono">{f.path}</span> <span class="tabular">{formatBytes(f.size_bytes)}</span>
						</li>
					))}
				</ul>
			</details>
		</div>
	);
}
