import { useEffect, useRef, useState } from "preact/hooks";
import { formatBytes, formatCompact, formatDay } from "../core/format";
import { get, isAbort } from "../core/http";
import { setQuery, useRoute } from "../core/router";
import { lacks, useCan } from "../core/session";
import type { FoundModel, FoundModels } from "../core/types";
import { Button } from "../ui/Button";
import { TextField } from "../ui/Field";
import { Badge, Empty, Failure, Loading } from "../ui/states";
import { Table } from "../ui/Table";
import { announce } from "../ui/toast";
import { Section, View } from "../ui/View";
import { DownloadDialog } from "./downloaddialog";
import { Jobs } from "./jobs";
import { texts } from "../texts";

export function Downloads() {
	const disabledFor = useCan("models.manage") ? null : lacks("models.manage");
	return (
		<View title={texts.common.downloads} lead={texts.downloads.findModelsConfiguredHubs}>
			<Jobs disabledFor={disabledFor} />
			<Section title={texts.downloads.findAModel}>{disabledFor ? <Empty icon="tokens" title={disabledFor} /> : <Search />}</Section>
		</View>
	);
}

interface Answer {
	models: FoundModel[] | null;
	error: Error | null;
	isLoading: boolean;
}

function Search() {
	const { query } = useRoute();
	const asked = query.get("q") ?? "";
	const [input, setInput] = useState(asked);
	const [answer, ask] = useSearch(asked);
	const [chosen, setChosen] = useState<string | null>(null);
	return (
		<>
			<form
				class="filters"
				role="search"
				onSubmit={(e) => {
					e.preventDefault();
					if (input.trim() === asked) ask();
					else setQuery({ q: input.trim() });
				}}
			>
				<TextField label={texts.downloads.searchOrName} type="search" placeholder={texts.downloads.searchExample} value={input} onInput={setInput} hint={texts.downloads.nameRepositoryPublisherRepository} />
				<div class="actions with-hint">
					<Button type="submit" kind="primary" icon="search">{texts.common.search}</Button>
					<Button disabledFor={isName(input) ? null : texts.downloads.enterPublisherRepositoryUrl} onClick={() => setChosen(input.trim())}>{texts.downloads.downloadThis}</Button>
				</div>
			</form>
			{answer.error && <Failure error={answer.error} retry={ask} />}
			{answer.isLoading && <Loading />}
			{answer.models && <Results models={answer.models} onChoose={(m) => setChosen(m.model)} />}
			{chosen !== null && <DownloadDialog model={chosen} onClose={() => setChosen(null)} />}
		</>
	);
}

const isName = (text: string): boolean => /^[^\s/]+\/[^\s]+$/.test(text.trim());

/** Searches the hubs. A search sends them a dozen requests, so it begins only when it is asked for. */
function useSearch(query: string): [Answer, () => void] {
	const nothing = { models: null, error: null, isLoading: false };
	const [answer, setAnswer] = useState<Answer>(nothing);
	const [attempt, setAttempt] = useState(0);
	const ending = useRef<AbortController>(undefined);
	useEffect(() => {
		ending.current?.abort();
		if (!query) return setAnswer(nothing);
		const now = (ending.current = new AbortController());
		setAnswer({ ...nothing, isLoading: true });
		get<FoundModels>("/api/v1/models/search", { query: { query, limit: 30 }, signal: now.signal }).then(
			({ models }) => {
				setAnswer({ ...nothing, models });
				announce(texts.downloads.found(models.length));
			},
			(error: Error) => !isAbort(error) && setAnswer({ ...nothing, error }),
		);
		return () => now.abort();
	}, [query, attempt]);
	return [answer, () => setAttempt((n) => n + 1)];
}

function Results({ models, onChoose }: { models: FoundModel[]; onChoose: (m: FoundModel) => void }) {
	return (
		<Table
			label={texts.downloads.foundModels}
			rows={models}
			rowKey={(m) => m.url + m.model}
			columns={[
				{
					title: texts.common.model,
					name: true,
					render: (m) => (
						<div class="name-cell">
							<a href={m.url} target="_blank" rel="noopener noreferrer">
								{m.model}
							</a>
							<span class="row tight">
								{m.well_known && <Badge tone="busy">{texts.common.recommended}</Badge>}
								{m.gated && <Badge tone="warning">{texts.downloads.gated}</Badge>}
								{m.downloaded && <Badge tone="good">{texts.common.downloaded}</Badge>}
							</span>
						</div>
					),
				},
				{ title: texts.downloads.bestQuantizationHere, minor: true, render: (m) => m.quantization || "–" },
				{ title: texts.common.size, numeric: true, minor: "phone", render: (m) => formatBytes(m.size_bytes) },
				{ title: texts.common.memory, render: (m) => <Fits fits={m.fits_memory} /> },
				{ title: texts.common.downloads, numeric: true, minor: true, render: (m) => formatCompact(m.downloads) },
				{ title: texts.common.updated, minor: true, render: (m) => formatDay(m.updated_at) },
				{
					title: texts.common.actions,
					hideTitle: true,
					render: (m) => (
						<span class="actions">
							<Button small onClick={() => onChoose(m)} aria-label={texts.common.downloadModel(m.model)}>{texts.downloads.download}</Button>
						</span>
					),
				},
			]}
			empty={
				<Empty icon="search" title={texts.downloads.noModelWasFound}>
					<p>{texts.downloads.wordsMustModelsName}</p>
				</Empty>
			}
		/>
	);
}

/** Whether something fits into this machine's memory. */
export function Fits({ fits }: { fits: boolean | null }) {
	if (fits === null) return <span class="muted">{texts.downloads.unknown}</span>;
	return fits ? <Badge tone="good">{texts.common.fits}</Badge> : <Badge tone="bad">{texts.common.tooLarge}</Badge>;
}

