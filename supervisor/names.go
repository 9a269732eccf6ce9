package supervisor

import (
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// What callers name of the scheduler.
type (
	Spec   = schedule.Spec
	Size   = schedule.Size
	Toggle = schedule.Toggle
	Remote = schedule.Remote

	Limits       = schedule.Limits
	GPU          = schedule.GPU
	GPUMemory    = schedule.GPUMemory
	DeviceMemory = schedule.DeviceMemory
	Outlook      = schedule.Outlook

	Demand      = schedule.Demand
	Route       = schedule.Route
	Retention   = schedule.Retention
	ContextNeed = schedule.ContextNeed
	Use         = schedule.Use
	Forgot      = schedule.Forgot
	Status      = schedule.Status
	Reason      = schedule.Reason
	Error       = schedule.Error
	ErrorKind   = schedule.ErrorKind
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
	Engine  = process.Engine
	Setup   = process.Setup
	Choices = process.Choices
	Fixed   = process.Fixed
	Build   = process.Build
	Device  = process.Device

	Program  = process.Program
	Knower   = process.Knower
	Batcher  = process.Batcher
	Saver    = process.Saver
	Renderer = process.Renderer
	Render   = process.Render
	Ask      = process.Ask

	DeviceReport = process.DeviceReport
	Loss         = process.Loss
	LossKind     = process.LossKind
)

// The kinds of losses.
const (
	Unharmed    = process.Unharmed
	Ended       = process.Ended
	Killed      = process.Killed
	OutOfMemory = process.OutOfMemory
	Hung        = process.Hung
	Deaf        = process.Deaf
	Unloaded    = process.Unloaded
	ShutDown    = process.ShutDown
	Unreachable = process.Unreachable
	Silent      = process.Silent
)
