// Package randommodel makes language models with random weights, for tests and measurements that need an engine to be slow, or
// an architecture that no shipped model has. A model takes its tokenizer and chat template from the shipped one, and says
// nonsense in printable ASCII, which depends on the whole prompt; it never ends its turn. The same shape and seed make the same file.
package randommodel

// Shape is what a model is made of. All sizes are numbers of elements.
type Shape struct {
	Architecture string // llama, gemma3, mamba, lfm2 or glm4moe
	Layers       int
	Predicting   int // further layers, of glm4moe, each of which predicts one more token
	Width        int // a multiple of 32
	Heads        int
	KVHeads      int
	HeadSize     int
	FeedForward  int // a multiple of 32
	Window       int // of attention in tokens, of gemma3
	Context      int // its length in tokens; 0: 4096
	Experts      int // of each layer, of llama, or of those that predict; 0: dense. Two of them compute a token
	Type         Type
	Template     string // of chats; empty: that of the model that the tokenizer is from
}

// Type is how weights are stored.
type Type uint32

// The numbers of the types in GGUF files.
const (
	f32 Type = 0
	F16 Type = 1
	Q8  Type = 8
)

// The lengths of contexts, in tokens. Each load clears the memory of one, so most models have the usual one.
const (
	usualContext = 4096
	LongContext  = 16384
)

// The shapes of small models, of about 10 MB. They process hundreds or thousands of tokens of a prompt per second.
var (
	Dense         = Shape{Architecture: "llama", Layers: 8, Width: 256, Heads: 4, KVHeads: 2, HeadSize: 64, FeedForward: 512, Type: F16}
	SlidingWindow = Shape{Architecture: "gemma3", Layers: 8, Width: 256, Heads: 4, KVHeads: 2, HeadSize: 64, FeedForward: 512, Window: 512, Type: F16}
	Recurrent     = Shape{Architecture: "mamba", Layers: 8, Width: 256, Type: F16}
	Hybrid        = Shape{Architecture: "lfm2", Layers: 8, Width: 256, Heads: 4, KVHeads: 2, HeadSize: 64, FeedForward: 512, Type: F16}
)

// Predicting is a dense model that predicts two tokens at once, by which it can draft for itself.
var Predicting = Shape{
	Architecture: "glm4moe", Layers: 4, Predicting: 1, Width: 256, Heads: 4, KVHeads: 2, HeadSize: 64, FeedForward: 512, Experts: 2,
	Type: F16,
}

// Mixture is a small mixture of experts.
var Mixture = Shape{Architecture: "llama", Layers: 4, Width: 256, Heads: 4, KVHeads: 2, HeadSize: 64, FeedForward: 256, Experts: 4, Type: F16}

// The shapes of models whose prompts take long: on one thread of a common processor, 8,000 tokens take Slow a quarter or half of a
// minute, and Big minutes. Their files have 30 MB and 300 MB, their caches 12 KiB and 48 KiB for each token.
var (
	Slow = Shape{Architecture: "llama", Layers: 8, Width: 384, Heads: 6, KVHeads: 6, HeadSize: 64, FeedForward: 1024, Context: LongContext, Type: F16}
	Big  = Shape{Architecture: "llama", Layers: 24, Width: 1024, Heads: 16, KVHeads: 8, HeadSize: 64, FeedForward: 2816, Context: LongContext, Type: Q8}
)
