import type { SVGAttributes } from "preact";

/** Pictures of 16 by 16, drawn with strokes in the colour of the text. */
const paths = {
	status: "M2 8h3l2-5 3 10 2-5h2",
	chat: "M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z",
	conversations: "M2.5 4h11M2.5 8h11M2.5 12h7",
	models: "M8 1.8 14 5v6l-6 3.2L2 11V5zM2 5l6 3.2L14 5M8 8.2v6",
	downloads: "M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11",
	memory: "M3.5 3.5h9v9h-9zM6 6h4v4H6zM6 3.5v-2M10 3.5v-2M6 14.5v-2M10 14.5v-2M3.5 6h-2M3.5 10h-2M14.5 6h-2M14.5 10h-2",
	warm: "M8 1.5c.5 3-3.5 4.5-3.5 8a3.5 3.5 0 0 0 7 0c0-1.5-.7-2.5-1.3-3.2-.3 1-.8 1.4-1.4 1.7C9 6 9.3 3.5 8 1.5z",
	requests: "M2 5h9.5M9 2.5 11.5 5 9 7.5M14 11H4.5M7 8.5 4.5 11 7 13.5",
	logs: "M3.5 1.5h6l3 3v10h-9zM6 7h4M6 9.5h4M6 12h2.5",
	usage: "M2.5 13.5h11M4.5 11V8M8 11V3.5M11.5 11V6",
	tokens: "M9.8 6.2a3.2 3.2 0 1 0-1.6 2.8L9.5 10.3H11v1.5h1.5v1.7H14v-2L9.7 7.5",
	mcp: "M6 2v3M10 2v3M4 5h8v2.5a4 4 0 0 1-8 0zM8 11.5V14",
	settings: "M2.5 4.5h6M11.5 4.5h2M8.5 3v3M2.5 11.5h2M7.5 11.5h6M7.5 10v3",
	menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
	close: "M4 4l8 8M12 4l-8 8",
	copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
	check: "M3 8.5 6.5 12 13 4.5",
	sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
	moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z",
	auto: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
	pin: "M6 2h4l-.5 4 2.5 2.5H4L6.5 6zM8 8.5V14",
	trash: "M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.5 9h6l.5-9M6.8 7v4M9.2 7v4",
	play: "M5 3l8 5-8 5z",
	pause: "M5.5 3v10M10.5 3v10",
	stop: "M4 4h8v8H4z",
	search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.3 10.3 14 14",
	refresh: "M13.5 3v3.5H10M2.5 13V9.5H6M3.2 6.2A5 5 0 0 1 13 6M12.8 9.8A5 5 0 0 1 3 10",
	plus: "M8 3v10M3 8h10",
	left: "M10 3 5 8l5 5",
	right: "M6 3l5 5-5 5",
	down: "M3 6l5 5 5-5",
	external: "M9 2.5h4.5V7M13.5 2.5 8 8M7 3.5H2.5v10h10V9",
	edit: "M10.5 3 13 5.5 5.5 13H3v-2.5zM9 4.5 11.5 7",
	image: "M2.5 3h11v10h-11zM2.5 11l3-3 2.5 2.5 2-2 3.5 3M10.5 6a.6.6 0 1 0 0-.1",
	camera: "M2.5 5h2.5l1.2-2h3.6L11 5h2.5v8h-11zM8 7a2.2 2.2 0 1 0 0 4.4A2.2 2.2 0 0 0 8 7z",
	send: "M8 13.5v-11M3.5 7 8 2.5 12.5 7",
	user: "M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8zM2.8 13.7c.6-2.5 2.6-3.7 5.2-3.7s4.6 1.2 5.2 3.7",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name, class: extra, ...rest }: { name: IconName; class?: string } & Omit<SVGAttributes<SVGSVGElement>, "name">) {
	return (
		<svg class={"icon" + (extra ? " " + extra : "")} viewBox="0 0 16 16" aria-hidden="true" focusable="false" {...rest}>
			<path d={paths[name]} />
		</svg>
	);
}
