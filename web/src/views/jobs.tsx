import { useEffect, useState } from "preact/hooks";
import { useEvents } from "../core/events";
import { formatAgo, formatBytes, formatDuration } from "../core/format";
import { post, segment } from "../core/http";
import { useResource } from "../core/resource";
import { href } from "../core/router";
import type { DownloadJob, DownloadJobs } from "../core/types";
import { Button } from "../ui/Button";
import { confirm } from "../ui/confirm";
import { Progress } from "../ui/Meter";
import { Badge, Fetched } from "../ui/states";
import { announce } from "../ui/toast";
import { Section } from "../ui/View";
import { texts } from "../texts";

/** The downloads, with their progress as it happens. */
export function Jobs({ disabledFor }: { disabledFor: string | null }) {
	const jobs = useResource<DownloadJobs>("/api/v1/models/download", { events: ["download.start", "download.paused", "download.completed", "download.failed", "download.cancelled"], every: 10_000 });
	const [newer, setNewer] = useState<Record<string, DownloadJob>>({});
	useEvents(["download.*"], ({ type, job }) => {
		const j = job as DownloadJob | undefined;
		if (!j) return;
		setNewer((all) => ({ ...all, [j.job_id]: j }));
		if (type === "download.completed") announce(texts.jobs.isDownloadedModel(j.model));
		if (type === "download.failed") announce(texts.jobs.downloadFailedModel(j.model));
	});
	useEffect(() => setNewer({}), [jobs.data]);
	return (
		<Fetched from={{ ...jobs, isLoading: false }}>
			{({ jobs: all }) =>
				all.length > 0 && (
					<Section title={texts.jobs.currentAndRecent}>
						<ul class="list">
							{all.map((j) => (
								<Job key={j.job_id} job={newer[j.job_id] ?? j} disabledFor={disabledFor} onDone={jobs.reload} />
							))}
						</ul>
					</Section>
				)
			}
		</Fetched>
	);
}

function Job({ job: j, disabledFor, onDone }: { job: DownloadJob; disabledFor: string | null; onDone: () => void }) {
	const share = j.total_size_bytes > 0 ? j.downloaded_bytes / j.total_size_bytes : 0;
	const act = (what: string) => async () => {
		await post(`/api/v1/models/download/${segment(j.job_id)}/${what}`);
		onDone();
	};
	const cancel = async () => {
		const isSure = await confirm({ title: texts.jobs.cancelThisDownload, text: <p>{texts.jobs.downloadedDeletedModel(j.model)}</p>, action: texts.jobs.cancelTheDownload, refusal: texts.jobs.keepDownloading, danger: true });
		if (isSure) await act("cancel")();
	};
	const isCancelled = j.status === "failed" && j.error?.code === "cancelled";
	return (
		<li class="job">
			<div class="row between">
				<span class="row">
					{j.status === "completed" ? <a href={href("models", j.model)}>{j.model}</a> : <strong>{j.model}</strong>}
					<State of={j} isCancelled={isCancelled} />
				</span>
				<span class="actions">
					{j.status === "downloading" && (
						<Button small icon="pause" disabledFor={disabledFor} onClick={act("pause")} aria-label={texts.jobs.pauseModel(j.model)}>{texts.common.pause}</Button>
					)}
					{(j.status === "paused" || (j.status === "failed" && !isCancelled)) && (
						<Button small icon="play" disabledFor={disabledFor} onClick={act("resume")} aria-label={`${j.status === "failed" ? texts.common.tryAgain : texts.common.resume} ${j.model}`}>
							{j.status === "failed" ? texts.common.tryAgain : texts.common.resume}
						</Button>
					)}
					{j.status !== "completed" && !isCancelled && (
						<Button small disabledFor={disabledFor} onClick={cancel} aria-label={texts.jobs.cancelModel(j.model)}>{texts.jobs.cancel}</Button>
					)}
				</span>
			</div>
			{(j.status === "downloading" || j.status === "paused") && <Progress label={texts.jobs.downloadOfModel(j.model)} value={share} />}
			<p class="hint tabular">{j.node ? texts.jobs.onNode(j.node, explain(j)) : explain(j)}</p>
			{j.trouble && <p class="error-text">{j.trouble}</p>}
			{j.error && !isCancelled && <p class="error-text">{j.error.message}</p>}
		</li>
	);
}

function State({ of: j, isCancelled }: { of: DownloadJob; isCancelled: boolean }) {
	if (isCancelled) return <Badge>{texts.jobs.cancelled}</Badge>;
	switch (j.status) {
		case "downloading":
			return <Badge tone="busy">{texts.jobs.downloading}</Badge>;
		case "paused":
			return <Badge tone="warning">{texts.common.paused}</Badge>;
		case "completed":
			return <Badge tone="good">{texts.jobs.completed}</Badge>;
		case "failed":
			return <Badge tone="bad">{texts.common.failed}</Badge>;
	}
}

function explain(j: DownloadJob): string {
	const size = texts.common.of(formatBytes(j.downloaded_bytes), formatBytes(j.total_size_bytes));
	if (j.status === "completed") return `${formatBytes(j.total_size_bytes)}, ${formatAgo(j.completed_at)}`;
	if (j.status !== "downloading" || !j.bytes_per_second) return size;
	const left = j.estimated_completion ? (new Date(j.estimated_completion).getTime() - Date.now()) / 1000 : null;
	return `${size}, ${formatBytes(j.bytes_per_second)}/s${left !== null && left > 0 ? texts.jobs.left(formatDuration(left)) : ""}`;
}
