package runtimes

import (
	"context"
	"path/filepath"
)

// workerPackages have what a model over several machines needs: the backend by which llama-server reaches workers, and the worker. They
// need no library that serverPackage doesn't need.
var workerPackages = []string{"libggml0-backend-rpc", "llama.cpp-tools-extra"}

// downloadWorker downloads the workerPackages. Without them models run on this machine all the same, so the only error is that ctx has
// ended.
func (d *debian) downloadWorker(ctx context.Context, suite *aptSuite) error {
	err := d.download(ctx, suite, workerFolder, workerPackages)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.warn(err)
	return nil
}

// complete adds the worker to an installed runtime that was made of the same version of the packages, when it had none. Nothing that is
// there is changed. The only error is that ctx has ended.
func (d *debian) complete(ctx context.Context, suite *aptSuite, name string) error {
	root := filepath.Join(filepath.Dir(d.stage.path), name)
	if WorkerOf(filepath.Join(root, "bin", llamaCpp.executable())) != "" {
		return nil
	}
	err := d.download(ctx, suite, workerFolder, workerPackages)
	if err == nil {
		err = d.unpack(ctx, suite.files(workerFolder), root)
	}
	if err == nil {
		err = makeWorkerStartable(root)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.warn(err)
	return nil
}

// warn logs why a runtime has no worker.
func (d *debian) warn(err error) {
	if err != nil {
		d.log.Warn("this runtime can't spread a model over several machines: its worker can't be got", "error", err)
	}
}
