package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/bus"
	"github.com/weft-sdn/weft/deploy"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/services"
	"github.com/weft-sdn/weft/services/gateway"
)

// openOffline opens the store in a data directory that no controller uses.
func openOffline(ctx context.Context, dir string) (*bus.Store, error) {
	return bus.Open(ctx, bus.Config{Directory: dir, Rebuilt: deploy.Rebuilt(services.All(gateway.Process{}))})
}

// offline returns the store in a data directory, and what closes it. If it
// cannot be opened and aside is set, its files are put aside first: then all
// that the manifests list is lost. Until it is closed, the process works as the
// owner of the directory.
func offline(cmd *cobra.Command, dir string, aside bool) (access storeAccess, done func() error, err error) {
	dir, back, err := asowner.Become(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("--data-dir: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, back())
		}
	}()
	if err := checkKinds(dir); err != nil {
		return nil, nil, err
	}
	store, err := openOffline(cmd.Context(), dir)
	if err != nil && aside && !strings.Contains(err.Error(), "is in use by") {
		to := filepath.Join(dir, "jetstream.damaged-"+time.Now().UTC().Format("20060102-150405"))
		if moved := os.Rename(filepath.Join(dir, "jetstream"), to); moved != nil {
			return nil, nil, errors.Join(err, moved)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "weft: the store cannot be opened (%v); its files are in %s now\n", err, to)
		store, err = openOffline(cmd.Context(), dir)
	}
	if err != nil {
		return nil, nil, err
	}
	return deploy.NewStoreAdmin(store), func() error { return errors.Join(store.Close(), back()) }, nil
}

// checkKinds refuses a data directory of another user in which there is anything but
// files and directories: what opens it could wait for that user.
func checkKinds(dir string) error {
	if os.Geteuid() == os.Getuid() {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.Type().IsRegular() && !e.IsDir() && e.Type() != fs.ModeSocket && path != dir {
			err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is neither a file nor a directory; remove it")}
		}
		return err
	})
}

// restore makes the store of a data directory hold what a backup does.
func restore(ctx context.Context, dir string, buckets map[string][]*api.StoreEntry) (err error) {
	if err := asowner.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	dir, back, err := asowner.Become(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, back()) }()
	if err := checkKinds(dir); err != nil {
		return err
	}
	store, err := openOffline(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	names, err := store.Buckets(ctx)
	if err != nil {
		return err
	}
	for name := range buckets {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	again := deploy.Rebuilt(services.All(gateway.Process{}))
	contents := map[string]map[string][]byte{}
	for _, name := range names {
		if again(name) {
			continue
		}
		contents[name] = map[string][]byte{}
		for _, e := range buckets[name] {
			contents[name][e.Key] = e.Value
		}
	}
	return store.Restore(ctx, contents)
}
