// Command imagelint checks the Dockerfile with the rules of `docker build --check`, and compose.yaml against the Compose
// specification, neither of which needs a Docker engine:
//
//	imagelint [folder]
//
// It is a module of its own, since nothing else needs its libraries.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/client/llb"
	"github.com/moby/buildkit/client/llb/sourceresolver"
	"github.com/moby/buildkit/frontend/dockerfile/dockerfile2llb"
	digest "github.com/opencontainers/go-digest"
)

func main() {
	folder := "."
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	ctx := context.Background()
	if err := errors.Join(checkDockerfile(ctx, folder), checkCompose(ctx, folder)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// anyImage describes every base image as one about which nothing is known.
type anyImage struct{}

func (anyImage) ResolveImageConfig(_ context.Context, ref string, _ sourceresolver.Opt) (string, digest.Digest, []byte, error) {
	config := []byte(`{"architecture": "amd64", "os": "linux", "config": {"Env": ["PATH=/usr/bin:/bin"]}}`)
	return ref, digest.FromBytes(config), config, nil
}

func checkDockerfile(ctx context.Context, folder string) error {
	text, err := os.ReadFile(filepath.Join(folder, "Dockerfile"))
	if err != nil {
		return err
	}
	source := llb.NewSourceMap(nil, "Dockerfile", "Dockerfile", text)
	source.Definition = new(llb.Definition)
	found, err := dockerfile2llb.DockerfileLint(ctx, text, dockerfile2llb.ConvertOpt{SourceMap: source, MetaResolver: anyImage{}})
	if err != nil {
		return err
	}
	var all []error
	if found.Error != nil {
		all = append(all, fmt.Errorf("Dockerfile: %s", found.Error.Message))
	}
	for _, w := range found.Warnings {
		line := int32(0)
		if len(w.Location.Ranges) > 0 {
			line = w.Location.Ranges[0].Start.Line
		}
		all = append(all, fmt.Errorf("Dockerfile:%d: %s: %s", line, w.RuleName, w.Detail))
	}
	return errors.Join(all...)
}

// checkCompose loads each profile of compose.yaml. Each has to have one service.
func checkCompose(ctx context.Context, folder string) error {
	file := filepath.Join(folder, "compose.yaml")
	names, err := profiles(ctx, file)
	if err != nil {
		return fmt.Errorf("compose.yaml: %w", err)
	}
	var all []error
	for _, name := range names {
		options, err := cli.NewProjectOptions([]string{file}, cli.WithProfiles([]string{name}))
		if err != nil {
			return err
		}
		project, err := options.LoadProject(ctx)
		if err == nil && len(project.Services) != 1 {
			err = fmt.Errorf("it has %d services", len(project.Services))
		}
		if err != nil {
			all = append(all, fmt.Errorf("compose.yaml: profile %s: %w", name, err))
		}
	}
	return errors.Join(all...)
}

func profiles(ctx context.Context, file string) ([]string, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, service := range project.Services {
		if len(service.Profiles) == 0 {
			return nil, fmt.Errorf("service %s is in no profile", service.Name)
		}
		names = append(names, service.Profiles...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
