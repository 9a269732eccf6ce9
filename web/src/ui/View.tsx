import type { ComponentChildren } from "preact";

/** The frame of a view: its title, its actions and what is in it. */
export function View({ title, lead, actions, children }: { title: string; lead?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren }) {
	return (
		<>
			<header class="view-header">
				<div>
					<h1 tabIndex={-1}>{title}</h1>
					{lead && <div class="lead">{lead}</div>}
				</div>
				{actions && <div class="actions">{actions}</div>}
			</header>
			{children}
		</>
	);
}

/** A part of a view with a title. */
export function Section({ title, actions, children }: { title: string; actions?: ComponentChildren; children: ComponentChildren }) {
	return (
		<section class="section">
			<header>
				<h2>{title}</h2>
				{actions && <div class="actions">{actions}</div>}
			</header>
			{children}
		</section>
	);
}
