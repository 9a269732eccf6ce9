// Command gpu measures lmcaddy on a machine's GPU, within minutes and without a network: it runs the built program, writes the models that it needs
// with random weights, and prints a table. What it compares with is the engine, started by hand with the arguments that lmcaddy gives it. A step that
// fails is a row of the table, and the next one follows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// plan is the extent of a measurement.
type plan struct {
	bin, home, tokenizer  string
	args                  string // of the engine, in addition
	withoutGPU            bool
	layers, width         int // of the models whose speed and placement are measured
	context               int // that they have
	longLayers, longWidth int // of the model with the long prompt
	prompt, tokens        int // the length of that prompt, and of an answer
	time                  time.Duration
}

func main() {
	var p plan
	flag.StringVar(&p.bin, "bin", "bin/lmcaddy", "the `program`")
	flag.StringVar(&p.home, "home", ".cache/gpu/home", "the `folder` for models and state, with an engine in runtimes; keep it, since CUDA's compiled code is in it")
	flag.StringVar(&p.tokenizer, "tokenizer", "testdata/models/lmcaddy/tinychat/tinychat-f16.gguf", "the `model` whose tokenizer random ones get")
	flag.StringVar(&p.args, "args", "", "additional `arguments` of the engine")
	flag.BoolVar(&p.withoutGPU, "without-gpu", false, "measure even if the engine finds no GPU")
	flag.IntVar(&p.layers, "layers", 16, "layers of the models")
	flag.IntVar(&p.width, "width", 2048, "their width, a multiple of 128")
	flag.IntVar(&p.context, "context", 4096, "their context length")
	flag.IntVar(&p.longLayers, "long-layers", 32, "layers of the model that gets the long prompt")
	flag.IntVar(&p.longWidth, "long-width", 4096, "its width, a multiple of 128")
	flag.IntVar(&p.prompt, "prompt", 12000, "tokens of the long prompt, at most 16000")
	flag.IntVar(&p.tokens, "tokens", 256, "tokens of an answer")
	flag.DurationVar(&p.time, "time", usualTime, "how long all of it may take; later steps are left out")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	table, err := measure(ctx, p)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Print(table)
}

// steps are in such an order that the most important things are measured if time is short. Their bounds are for usualTime.
const usualTime = 5 * time.Minute

var steps = []struct {
	name   string
	atMost time.Duration
	take   func(*machine)
}{
	{"the models", 2 * time.Minute, writeModels},
	{"the GPU", 40 * time.Second, findGPU},
	{"speed and loads", 150 * time.Second, func(m *machine) { speed(m, "default", "") }},
	{"speed and loads, `sandbox off`", 60 * time.Second, func(m *machine) { speed(m, "`sandbox off`", "sandbox off") }},
	{"two models", time.Minute, twoModels},
	{"a model larger than the GPU's memory", 40 * time.Second, tooLarge},
	{"a conversation that returns", time.Minute, returns},
	{"another program's memory", 90 * time.Second, held},
}

// measure takes all steps, and returns the table. The error says that there is nothing to measure, or that the measurement was interrupted.
func measure(ctx context.Context, p plan) (string, error) {
	for _, path := range []*string{&p.bin, &p.home, &p.tokenizer} {
		*path, _ = filepath.Abs(*path) // the working folder exists
	}
	m := &machine{plan: p}
	begin := time.Now()
	if err := m.try(ctx, patience, look); err != nil {
		return "", err
	}
	if m.gpu == "" && !p.withoutGPU {
		return "", fmt.Errorf("the engine %s finds no GPU, so there is nothing to measure. Run `lmcaddy doctor`: a driver may be missing, or the engine be one "+
			"for the processor, which `lmcaddy runtime get llama.cpp` replaces. `make gpu GPU_DEVICES=lavapipe` tries the measurement without a GPU", m.engine)
	}
	whole, cancel := context.WithTimeout(ctx, p.time)
	defer cancel()
	for _, s := range steps {
		fmt.Fprintf(os.Stderr, "%4.0f s: %s\n", time.Since(begin).Seconds(), s.name)
		err := m.try(whole, time.Duration(float64(s.atMost)*float64(p.time)/float64(usualTime)), s.take)
		switch {
		case ctx.Err() != nil:
			return "", errors.New("interrupted")
		case whole.Err() != nil:
			m.add(s.name, fmt.Sprintf("no time was left of %s", p.time), "", notMeasured)
		case err != nil:
			m.add(s.name, "failed: "+err.Error(), "", missed)
		}
	}
	return m.inMarkdown(fmt.Sprintf("Measured on %s with %s, on %s, in %.0f s. The models have random weights in Q8_0: %d layers, width %d; the one with the "+
		"long prompt %d layers, width %d.", begin.Format(time.DateOnly), m.version, m.title, time.Since(begin).Seconds(), p.layers, p.width, p.longLayers, p.longWidth)), nil
}

// failure is what ends a step.
type failure struct{ error }

// must returns a value, or ends the step.
func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// try takes a step, and returns what ended it early.
func (m *machine) try(ctx context.Context, atMost time.Duration, take func(*machine)) (err error) {
	var cancel context.CancelFunc
	m.ctx, cancel = context.WithTimeoutCause(ctx, atMost, fmt.Errorf("it isn't done after %s", atMost))
	defer cancel()
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r
			if cause := context.Cause(m.ctx); cause != nil {
				err = fmt.Errorf("%w: %w", cause, r)
			}
		default:
			panic(r)
		}
	}()
	take(m)
	return nil
}
