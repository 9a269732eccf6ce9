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

/** The downloads, with their progress as it happens. */
export function Jobs({ disabledFor }: { disabledFor: string | null }) {
	const jobs = useResource<DownloadJobs>("/api/v1/models/download", { events: ["download.start", "download.paused", "download.completed", "download.failed", "download.cancelled"], every: 10_000 });
	const [newer, setNewer] = useState<Record<string, DownloadJob>>({});
	useEvents(["download.*"], ({ type, job }) => {
		const j = job as DownloadJob | undefined;
		if (!j) return;
		setNewer((all) => ({ ...all, [j.job_id]: j }));
		if (type === "download.completed") announce(`${j.model} is downloaded`);
		if (type === "download.failed") announce(`The download of ${j.model} has failed`);
	});
	useEffect(() => setNewer({}), [jobs.data]);
	return (
		<Fetched from={{ ...jobs, isLoading: false }}>
			{({ jobs: all }) =>
				all.length > 0 && (
					<Section title="Current and recent">
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
		const isSure = await confirm({ title: "Cancel this download?", text: <p>What was downloaded of {j.model} is deleted.</p>, action: "Cancel the download", refusal: "Keep downloading", danger: true });
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
						<Button small icon="pause" disabledFor={disabledFor} onClick={act("pause")} aria-label={`Pause ${j.model}`}>
							Pause
						</Button>
					)}
					{(j.status === "paused" || (j.status === "failed" && !isCancelled)) && (
						<Button small icon="play" disabledFor={disabledFor} onClick={act("resume")} aria-label={`${j.status === "failed" ? "Try again" : "Resume"} ${j.model}`}>
							{j.status === "failed" ? "Try again" : "Resume"}
						</Button>
					)}
					{j.status !== "completed" && !isCancelled && (
						<Button small disabledFor={disabledFor} onClick={cancel} aria-label={`Cancel ${j.model}`}>
							Cancel…
						</Button>
					)}
				</span>
			</div>
			{(j.status === "downloading" || j.status === "paused") && <Progress label={`Download of ${j.model}`} value={share} />}
			<p class="hint tabular">{j.node ? `On ${j.node}: ${explain(j)}` : explain(j)}</p>
			{j.trouble && <p class="error-text">{j.trouble}</p>}
			{j.error && !isCancelled && <p class="error-text">{j.error.message}</p>}
		</li>
	);
}

function State({ of: j, isCancelled }: { of: DownloadJob; isCancelled: boolean }) {
	if (isCancelled) return <Badge>Cancelled</Badge>;
	switch (j.status) {
		case "downloading":
			return <Badge tone="busy">Downloading</Badge>;
		case "paused":
			return <Badge tone="warning">Paused</Badge>;
		case "completed":
			return <Badge tone="good">Completed</Badge>;
		case "failed":
			return <Badge tone="bad">Failed</Badge>;
	}
}

function explain(j: DownloadJob): string {
	const size = `${formatBytes(j.downloaded_bytes)} of ${formatBytes(j.total_size_bytes)}`;
	if (j.status === "completed") return `${formatBytes(j.total_size_bytes)}, ${formatAgo(j.completed_at)}`;
	if (j.status !== "downloading" || !j.bytes_per_second) return size;
	const left = j.estimated_completion ? (new Date(j.estimated_completion).getTime() - Date.now()) / 1000 : null;
	return `${size}, ${formatBytes(j.bytes_per_second)}/s${left !== null && left > 0 ? `, ${formatDuration(left)} left` : ""}`;
}
