package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
)

// Down takes a lab down: its processes, those started in its hosts included,
// its namespaces and its files. It works from what is there, so it also ends
// labs half made or whose maker was killed; taking down what is not up is no error.
func Down(ctx context.Context, name string) error {
	if err := topology.CheckName(name); err != nil {
		return err
	}
	if err := machine.NeedRoot(); err != nil {
		return err
	}
	release := hold(ctx, name)
	defer release()
	if err := machine.MembersOf(name).End(ctx); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	home, err := machine.FindHome()
	if err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	defer home.Close()
	var g errgroup.Group
	g.SetLimit(4)
	for _, ns := range machine.LabNetns(name) {
		g.Go(func() error { return errors.Join(nodes.Detach(ns), home.DeleteNetns(ns)) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	if err := os.RemoveAll(machine.Dir(name)); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	// What a killed maker has started bears no mark until it runs its program: that
	// ends by itself when it finds no directory, or is found now.
	if err := machine.MembersOf(name).End(ctx); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	if err := os.RemoveAll(machine.Dir(name)); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	if err := machine.RestoreNeighbourLimits(); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	machine.RemoveIfEmpty(machine.RunDir)
	return nil
}

// patience is for how long Down waits for others to stop changing the lab: no part of
// their work takes longer.
const patience = 70 * time.Second

// hold has others stop changing a lab, and keeps them from it until it is released.
func hold(ctx context.Context, name string) (release func()) {
	f, err := os.OpenFile(filepath.Join(machine.Dir(name), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return func() {} // there are no files of it
	}
	_ = os.WriteFile(layout.EndingFile(name), nil, 0o600) // without room for it, an apply ends by itself
	for end := time.Now().Add(patience); ctx.Err() == nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			break
		}
	}
	return func() {
		os.Remove(layout.EndingFile(name)) // of a lab that could not be taken down
		f.Close()
	}
}

// DownAll takes every lab down and returns their names.
func DownAll(ctx context.Context) ([]string, error) {
	names, err := machine.Names()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, Down(ctx, name))
	}
	return names, errors.Join(errs...)
}
