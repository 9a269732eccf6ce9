package e2e

// kinds starts the engines of the models that aren't for chats as what they are.
var kinds = []string{
	"model " + embedModel + " {", "args --embeddings -b 512 -ub 512", "}",
	"model " + rerankModel + " {", "args --reranking -b 512 -ub 512", "}",
}
