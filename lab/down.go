package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// Down takes a lab down: its processes, those started in its hosts included,
// its namespaces and its files. It works from what is there, so it also ends
// labs half made or whose maker was killed; taking down what is not up is no error.
func Down(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := needRoot(); err != nil {
		return err
	}
	if err := newBelongs(name).end(ctx); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	home, err := findHome()
	if err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	defer home.close()
	var g errgroup.Group
	g.SetLimit(4)
	for _, ns := range labNetns(name) {
		g.Go(func() error { return errors.Join(detach(ns), home.deleteNetns(ns)) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	if err := os.RemoveAll(dirOf(name)); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	// What a killed maker has started bears no mark until it runs its program: that
	// ends by itself when it finds no directory, or is found now.
	if err := newBelongs(name).end(ctx); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	if err := os.RemoveAll(dirOf(name)); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	if err := restoreNeighbourLimits(); err != nil {
		return fmt.Errorf("take lab %s down: %w", name, err)
	}
	removeIfEmpty(runDir)
	return nil
}

// removeIfEmpty removes the directories above the labs once none is left.
func removeIfEmpty(dir string) {
	if os.Remove(dir) == nil {
		os.Remove(filepath.Dir(dir))
	}
}

// DownAll takes every lab down and returns their names.
func DownAll(ctx context.Context) ([]string, error) {
	names, err := Names()
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, Down(ctx, name))
	}
	return names, errors.Join(errs...)
}
