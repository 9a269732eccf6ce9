// Package ollama reads the requests of Ollama's API, and writes its answers: lines of JSON, or one object.
package ollama
