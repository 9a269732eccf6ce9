import { plural } from "../core/format";
import { segment } from "../core/http";
import { useResource } from "../core/resource";
import { href } from "../core/router";
import { session } from "../core/session";
import { useStore } from "../core/store";
import type { MCPServer, MCPServers, MCPServerWithTools } from "../core/types";
import { Code } from "../ui/Copy";
import { Badge, Empty, Fact, Facts, Fetched, Note, type Tone } from "../ui/states";
import { Section, View } from "../ui/View";

export function MCP({ rest }: { rest: string }) {
	return rest ? <OneServer label={rest} /> : <AllServers />;
}

const tones: Record<MCPServer["status"], Tone> = { connected: "good", idle: "neutral", failed: "bad" };
const words: Record<MCPServer["status"], string> = { connected: "Connected", idle: "Idle", failed: "Failed" };

function AllServers() {
	const servers = useResource<MCPServers>("/api/v1/mcp", { every: 10_000 });
	const { settings } = useStore(session);
	return (
		<View title="MCP servers" lead="Servers of mcp.json, whose tools models can call.">
			{settings && !settings.allow.plugin_mcp && (
				<Note kind="warning">
					<span>
						Chats may not use these servers: the gate <code>plugin_mcp</code> is closed. <a href={href("settings")}>How to open it</a>
					</span>
				</Note>
			)}
			<Fetched from={servers}>
				{({ servers: all }) =>
					all.length === 0 ? (
						<Empty icon="mcp" title="There are no MCP servers">
							<p>
								Add them to <code>mcp.json</code> in lmcaddy's folder, as for other programs. Changes count at once.
							</p>
						</Empty>
					) : (
						<ul class="list">
							{all.map((s) => (
								<li key={s.label}>
									<div class="row between">
										<span class="row">
											<a href={href("mcp", s.label)}>
												<strong>{s.label}</strong>
											</a>
											<Badge tone={tones[s.status]}>{words[s.status]}</Badge>
										</span>
										<span class="muted">{s.tools !== undefined && s.tools !== null ? plural(s.tools, "tool") : ""}</span>
									</div>
									<p class="hint mono">{s.url ?? s.command ?? s.transport}</p>
									{s.error && <p class="error-text">{s.error}</p>}
								</li>
							))}
						</ul>
					)
				}
			</Fetched>
		</View>
	);
}

function OneServer({ label }: { label: string }) {
	const server = useResource<MCPServerWithTools>("/api/v1/mcp/" + segment(label));
	return (
		<View title={label} lead={<a href={href("mcp")}>MCP servers</a>}>
			<Fetched from={server}>
				{(s) => (
					<>
						<div class="card">
							<Facts>
								<Fact name="Status">
									<Badge tone={tones[s.status]}>{words[s.status]}</Badge>
								</Fact>
								<Fact name="Transport">{{ stdio: "Standard input and output", http: "HTTP", sse: "HTTP with server-sent events" }[s.transport]}</Fact>
								<Fact name="Sessions">{String(s.sessions)}</Fact>
								<Fact name="Address">{s.url && <span class="mono">{s.url}</span>}</Fact>
								<Fact name="Command">{s.command && <span class="mono">{s.command}</span>}</Fact>
							</Facts>
						</div>
						{s.error && <Note kind="error">{s.error}</Note>}
						<Section title={plural(s.tools.length, "tool")}>
							{s.tools.length === 0 ? (
								<Empty title="It has no tools">{null}</Empty>
							) : (
								<ul class="list">
									{s.tools.map((tool) => (
										<li key={tool.name}>
											<h3 class="mono">{tool.name}</h3>
											{tool.title && <p>{tool.title}</p>}
											<p class="hint pre">{tool.description}</p>
											<details>
												<summary>Arguments</summary>
												<Code block text={JSON.stringify(tool.input_schema, null, 2)} label={`schema of ${tool.name}`} />
											</details>
										</li>
									))}
								</ul>
							)}
						</Section>
					</>
				)}
			</Fetched>
		</View>
	);
}
