package catalog

import (
	"github.com/lmcaddy/lmcaddy/catalog/model"
)

// What models are is described in package model, which whoever only has to know that may import: it reads no files.
type (
	// Model is a model on disk, or on a remote.
	Model = model.Model
	// Format is a model's file format.
	Format = model.Format
	// Layout is the structure of the folders that a model's files are in.
	Layout = model.Layout
	// Type is what a model is for.
	Type = model.Type
	// Pooling is the way in which a model computes one vector or number from many tokens.
	Pooling = model.Pooling
	// Reasoning describes the choice of reasoning effort that a model offers.
	Reasoning = model.Reasoning
	// Quantization says how a model's weights are stored.
	Quantization = model.Quantization
)

// The constants of these types.
const (
	FormatGGUF = model.FormatGGUF
	FormatMLX  = model.FormatMLX

	LayoutPlain  = model.LayoutPlain
	LayoutHub    = model.LayoutHub
	LayoutCache  = model.LayoutCache
	LayoutOllama = model.LayoutOllama

	TypeLLM       = model.TypeLLM
	TypeEmbedding = model.TypeEmbedding

	PoolingNone = model.PoolingNone
	PoolingMean = model.PoolingMean
	PoolingCLS  = model.PoolingCLS
	PoolingLast = model.PoolingLast
	PoolingRank = model.PoolingRank
)
