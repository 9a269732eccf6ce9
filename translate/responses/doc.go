// Package responses implements the Responses API, POST /v1/responses and its stored responses: it parses requests, and encodes
// answers in one piece and as streams. The format is that of https://platform.openai.com/docs/api-reference/responses.
package responses
