import { useEffect, useRef, useState } from "preact/hooks";
import { live } from "./core/events";
import { get } from "./core/http";
import { href, useRoute } from "./core/router";
import { offerToken, session, setSettings, signOut, useCan } from "./core/session";
import { useStore } from "./core/store";
import type { Settings } from "./core/types";
import { TokenDialog } from "./token";
import { Button } from "./ui/Button";
import { Confirmation } from "./ui/confirm";
import { focusMain } from "./ui/focus";
import { Icon } from "./ui/icons";
import { Failure, Loading, Needs } from "./ui/states";
import { nextTheme, theme } from "./ui/theme";
import { Toasts } from "./ui/toast";
import { views, type ViewEntry } from "./views";
import { texts } from "./texts";

export function App() {
	const { generation, settings } = useStore(session);
	const { view: name, rest, visits } = useRoute();
	const [error, setError] = useState<Error | null>(null);
	const [attempt, setAttempt] = useState(0);
	const [isMenuOpen, setMenuOpen] = useState(false);
	const main = useRef<HTMLElement>(null);
	const entry = views.find((v) => v.name === name) ?? views[0];

	useEffect(() => {
		setError(null);
		get<Settings>("/api/v1/settings").then(setSettings, setError);
	}, [generation, attempt]);

	const isFirst = useRef(true);
	useEffect(() => {
		document.title = `${entry?.title} – lmcaddy`;
		setMenuOpen(false);
		if (!isFirst.current) {
			scrollTo(0, 0);
			focusMain();
		}
		isFirst.current = false;
	}, [name, visits]);

	if (!entry) return null;
	return (
		<>
			<a
				class="skip"
				href="#main"
				onClick={(e) => {
					e.preventDefault();
					main.current?.focus();
				}}
			>{texts.app.skipToContent}</a>
			<header class="top">
				<Button kind="quiet" class="menu-button" icon={isMenuOpen ? "close" : "menu"} label={isMenuOpen ? texts.app.closeMenu : texts.app.menu} aria-expanded={isMenuOpen} aria-controls="menu" onClick={() => setMenuOpen(!isMenuOpen)} />
				<a class="brand" href={href("status")}>{texts.app.lmcaddy}</a>
				<Connection />
				<span class="spring" />
				<Who />
				<ThemeSwitch />
			</header>
			<Menu current={entry} isOpen={isMenuOpen} />
			<main id="main" ref={main} tabIndex={-1}>
				{error && <Failure error={error} retry={() => setAttempt(attempt + 1)} />}
				{settings ? <Shown entry={entry} rest={rest} /> : !error && <Loading />}
			</main>
			<TokenDialog />
			<Confirmation />
			<Toasts />
		</>
	);
}

function Shown({ entry, rest }: { entry: ViewEntry; rest: string }) {
	const Component = entry.component;
	const shown = <Component key={entry.name} rest={rest} />;
	if (!entry.scope) return shown;
	return (
		<Needs scope={entry.scope} title={entry.title}>
			{shown}
		</Needs>
	);
}

function Menu({ current, isOpen }: { current: ViewEntry; isOpen: boolean }) {
	const groups = [...new Set(views.map((v) => v.group))];
	return (
		<nav id="menu" class={isOpen ? "menu open" : "menu"} aria-label={texts.app.views}>
			{groups.map((group) => (
				<div key={group} role="group" aria-label={group || undefined}>
					{group && <p aria-hidden="true">{group}</p>}
					<ul>
						{views
							.filter((v) => v.group === group)
							.map((v) => (
								<li key={v.name}>
									<a href={href(v.name)} aria-current={v === current ? "page" : undefined}>
										<Icon name={v.icon} />
										{v.title}
									</a>
								</li>
							))}
					</ul>
				</div>
			))}
		</nav>
	);
}

/** Whether changes are shown at once. */
function Connection() {
	const state = useStore(live);
	const { settings } = useStore(session);
	const mayFollow = useCan("models.read");
	if (!settings || !mayFollow || state === "connecting") return null;
	return state === "live" ? (
		<span class="connection live" title={texts.app.changesShownHappen}>
			<span class="wide-only">{texts.app.live}</span>
		</span>
	) : (
		<span class="connection broken" role="status" title={texts.app.pageTriesConnectAgain}>
			<span class="wide-only">{texts.common.reconnecting}</span>
		</span>
	);
}

/** Who uses the page, and how to change that. */
function Who() {
	const { token, settings } = useStore(session);
	if (!settings) return null;
	const name = settings.identity?.name;
	return (
		<div class="who">
			{name && (
				<span class="name" title={texts.app.scopes(settings.identity?.scopes.join(", ") ?? "")}>
					{name}
				</span>
			)}
			{token ? (
				<Button kind="quiet" small onClick={signOut}>{texts.app.signOut}</Button>
			) : (
				!name && (
					<Button kind="quiet" small icon="tokens" onClick={() => offerToken()} aria-label={texts.common.enterAToken}>
						<span class="wide-only">{texts.common.enterAToken}</span>
					</Button>
				)
			)}
		</div>
	);
}

function ThemeSwitch() {
	const chosen = useStore(theme);
	const icon = { auto: "auto", light: "sun", dark: "moon" } as const;
	return <Button kind="quiet" icon={icon[chosen]} label={{ auto: texts.app.coloursAsTheSystem, light: texts.app.coloursLight, dark: texts.app.coloursDark }[chosen]} onClick={nextTheme} />;
}
