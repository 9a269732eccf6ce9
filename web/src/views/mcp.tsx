import { segment } from "../core/http";
import { useResource } from "../core/resource";
import { href } from "../core/router";
import { session } from "../core/session";
import { useStore } from "../core/store";
import type { MCPServer, MCPServers, MCPServerWithTools } from "../core/types";
import { Code } from "../ui/Copy";
import { Badge, Empty, Fact, Facts, Fetched, Note, type Tone } from "../ui/states";
import { Section, View } from "../ui/View";
import { texts } from "../texts";

export function MCP({ rest }: { rest: string }) {
	return rest ? <OneServer label={rest} /> : <AllServers />;
}

const tones: Record<MCPServer["status"], Tone> = { connected: "good", idle: "neutral", failed: "bad" };
const words: Record<MCPServer["status"], string> = { connected: texts.common.connected, idle: texts.mcp.idle, failed: texts.common.failed };

function AllServers() {
	const servers = useResource<MCPServers>("/api/v1/mcp", { every: 10_000 });
	const { settings } = useStore(session);
	return (
		<View title={texts.common.mcpServers} lead={texts.mcp.serversMcpJsonWhose}>
			{settings && !settings.allow.plugin_mcp && (
				<Note kind="warning">
					<span>{texts.mcp.chatsMayNotUse(<code>plugin_mcp</code>, <a href={href("settings")}>{texts.mcp.howToOpenIt}</a>)}</span>
				</Note>
			)}
			<Fetched from={servers}>
				{({ servers: all }) =>
					all.length === 0 ? (
						<Empty icon="mcp" title={texts.mcp.noMcpServers}>
							<p>{texts.mcp.addLmcaddysFolderOther(<code>mcp.json</code>)}</p>
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
										<span class="muted">{s.tools !== undefined && s.tools !== null ? texts.common.toolCount(s.tools) : ""}</span>
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
		<View title={label} lead={<a href={href("mcp")}>{texts.common.mcpServers}</a>}>
			<Fetched from={server}>
				{(s) => (
					<>
						<div class="card">
							<Facts>
								<Fact name={texts.common.status}>
									<Badge tone={tones[s.status]}>{words[s.status]}</Badge>
								</Fact>
								<Fact name={texts.mcp.transport}>{{ stdio: texts.mcp.standardInputAndOutput, http: "HTTP", sse: texts.mcp.httpServerSentEvents }[s.transport]}</Fact>
								<Fact name={texts.mcp.sessions}>{String(s.sessions)}</Fact>
								<Fact name={texts.mcp.address}>{s.url && <span class="mono">{s.url}</span>}</Fact>
								<Fact name={texts.mcp.command}>{s.command && <span class="mono">{s.command}</span>}</Fact>
							</Facts>
						</div>
						{s.error && <Note kind="error">{s.error}</Note>}
						<Section title={texts.common.toolCount(s.tools.length)}>
							{s.tools.length === 0 ? (
								<Empty title={texts.mcp.itHasNoTools}>{null}</Empty>
							) : (
								<ul class="list">
									{s.tools.map((tool) => (
										<li key={tool.name}>
											<h3 class="mono">{tool.name}</h3>
											{tool.title && <p>{tool.title}</p>}
											<p class="hint pre">{tool.description}</p>
											<details>
												<summary>{texts.common.arguments}</summary>
												<Code block text={JSON.stringify(tool.input_schema, null, 2)} label={texts.mcp.schemaOfName(tool.name)} />
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
