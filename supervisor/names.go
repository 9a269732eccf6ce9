package supervisor

import (
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// What callers name of the scheduler.

type (
	// Spec says how a model is loaded.
	Spec = schedule.Spec
	// Size is the part of a Spec that is reduced when there is too little room.
	Size = schedule.Size
	// Toggle is a choice that may be left to the engine.
	Toggle = schedule.Toggle
	// Remote is the part of a Spec that says which model of which server an instance is.
	Remote = schedule.Remote
	// Limits bound what is loaded and how many requests wait.
	Limits = schedule.Limits
	// GPU is a device with memory of its own, as instances are counted against it.
	GPU = schedule.GPU
	// GPUMemory is what a GPU's driver, or the engine, reports about its memory.
	GPUMemory = schedule.GPUMemory
	// DeviceMemory is what an instance takes of a device's memory, in bytes.
	DeviceMemory = schedule.DeviceMemory
	// Outlook says what a load would do if it were requested now.
	Outlook = schedule.Outlook
	// Demand is what a request needs.
	Demand = schedule.Demand
	// Route says where a request may be served.
	Route = schedule.Route
	// Retention is what a request says of the instance that answers it: for how long it stays loaded without requests from now on.
	Retention = schedule.Retention
	// ContextNeed estimates how many tokens of context a request needs.
	ContextNeed = schedule.ContextNeed
	// Use is what a request has made of a slot, as far as its answer has told.
	Use = schedule.Use
	// Forgot says that something was deleted.
	Forgot = schedule.Forgot
	// Status is a stage in the life of an instance.
	Status = schedule.Status
	// Reason says why an instance is stopped.
	Reason = schedule.Reason
	// Error is a refusal.
	Error = schedule.Error
)

// The choices of a Toggle.
const (
	Auto = schedule.Auto
	On   = schedule.On
	Off  = schedule.Off
)

// ToggleOf returns On or Off.
func ToggleOf(on bool) Toggle { return schedule.ToggleOf(on) }

// CPU is the name of the device that every machine has: its processor, with the machine's memory.
const CPU = schedule.CPU

// RuntimeMemory is what an engine takes in addition to its buffers, in bytes. Estimates must include it.
const RuntimeMemory = schedule.RuntimeMemory

// The stages in the life of an instance.
const (
	Starting = schedule.Starting
	Loading  = schedule.Loading
	Ready    = schedule.Ready
	Draining = schedule.Draining
	Stopping = schedule.Stopping
)

// The reasons for which an instance is stopped.
const (
	ForRoom     = schedule.ForRoom
	ForOthers   = schedule.ForOthers
	ForIdleness = schedule.ForIdleness
	ForRequest  = schedule.ForRequest
	ForSettings = schedule.ForSettings
	ForSharing  = schedule.ForSharing
	ForNobody   = schedule.ForNobody
	ForSignal   = schedule.ForSignal
	ForSilence  = schedule.ForSilence
)

// The kinds of errors.
const (
	LoadFailed = schedule.LoadFailed
	NotLoaded  = schedule.NotLoaded
	NoInstance = schedule.NoInstance
	NeverFits  = schedule.NeverFits
	QueueFull  = schedule.QueueFull
	Closing    = schedule.Closing
	NoFiles    = schedule.NoFiles
	IDTaken    = schedule.IDTaken
	RemoteAway = schedule.RemoteAway
	NotOurs    = schedule.NotOurs
)

// UnknownInstance is the error of an order about an instance that there is not.
func UnknownInstance(id string) Error { return schedule.UnknownInstance(id) }

// AffinityOf returns the number by which nodes are ranked for something that texts identify; never 0.
func AffinityOf(first []byte, more ...[]byte) uint64 { return schedule.AffinityOf(first, more...) }

// What callers name of engines and their processes.

type (
	// Engine describes an engine: what it is called, which models it runs, what can be chosen of a load, and how its process is made.
	Engine = process.Engine
	// Setup is what an engine's process is made with.
	Setup = process.Setup
	// Choices tells what can be chosen of a load of a model; nil: nothing.
	Choices = process.Choices
	// Fixed tells what of a load arguments decide that the operator has added; nil: nothing.
	Fixed = process.Fixed
	// Build describes an engine's binary.
	Build = process.Build
	// Device is a GPU or another accelerator.
	Device = process.Device
	// Program is the process side of an engine: how it is launched, what its output means, and how it is stopped.
	Program = process.Program
	// Knower is a Process that can tell which models are newer than its engine.
	Knower = process.Knower
	// Batcher is a Process that evaluates a prompt in batches of a known size.
	Batcher = process.Batcher
	// Saver is a Process that can write the states of its slots to files, and read them again.
	Saver = process.Saver
	// Renderer is a Process that can show what a model's chat template makes of requests, without its engine.
	Renderer = process.Renderer
	// Render is what a Renderer makes.
	Render = process.Render
	// Ask sends a JSON body, in pieces, to an engine, and returns its answer.
	Ask = process.Ask
	// DeviceReport is what an engine has found to compute on.
	DeviceReport = process.DeviceReport
	// Loss says what happened to an engine that failed a request.
	Loss = process.Loss
	// LossKind is the kind of a Loss.
	LossKind = process.LossKind
)

// The kinds of losses.
const (
	Ended       = process.Ended
	Killed      = process.Killed
	OutOfMemory = process.OutOfMemory
	Hung        = process.Hung
	Deaf        = process.Deaf
	ShutDown    = process.ShutDown
	Unreachable = process.Unreachable
	Silent      = process.Silent
)
