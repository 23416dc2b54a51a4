package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/internal/asowner"
)

// storeAccess is the durable state, of a running controller or in a directory.
type storeAccess interface {
	GetStore(context.Context, *api.GetStoreRequest) (*api.StoreStatus, error)
	ReadStore(context.Context, *api.ReadStoreRequest) (*api.ReadStoreResponse, error)
	RepairStore(context.Context, *api.RepairStoreRequest) (*api.RepairStoreResponse, error)
}

// remoteStore is that of a running controller.
type remoteStore struct{ c *cli.Controller }

func (s remoteStore) GetStore(_ context.Context, r *api.GetStoreRequest) (*api.StoreStatus, error) {
	return s.c.GetStore(s.c.Ctx, r)
}

func (s remoteStore) ReadStore(_ context.Context, r *api.ReadStoreRequest) (*api.ReadStoreResponse, error) {
	return s.c.ReadStore(s.c.Ctx, r)
}

func (s remoteStore) RepairStore(_ context.Context, r *api.RepairStoreRequest) (*api.RepairStoreResponse, error) {
	return s.c.RepairStore(s.c.Ctx, r)
}

// storeFlags are those of the commands about the durable state.
type storeFlags struct {
	cli.Remote
	dir string
}

func (s *storeFlags) flags(cmd *cobra.Command) {
	s.Remote.Flags(cmd)
	cmd.Flags().StringVar(&s.dir, "data-dir", "", "directory of the durable state of a controller that does not run; without it, a running one is asked")
	cmd.MarkFlagDirname("data-dir")
}

// open returns the store, and what ends the access to it.
func (s *storeFlags) open(cmd *cobra.Command, aside bool) (storeAccess, func() error, error) {
	if cmd.Context() == nil {
		cmd.SetContext(context.Background())
	}
	if s.dir != "" {
		return offline(cmd, s.dir, aside)
	}
	c, done, err := s.Dial(cmd)
	if err != nil {
		return nil, nil, err
	}
	return remoteStore{c}, func() error { done(); return nil }, nil
}

func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look at the durable state, back it up, and repair it",
		Long: `Look at what the controller keeps, back it up, and repair it. A bucket that has
lost something is read-only, and nothing is deleted from switches for what it
lacks, until it is repaired.`,
		Example: `  weft store status
  weft store backup weft.backup
  weft store repair --from weft.backup`,
	}
	cmd.AddCommand(storeStatusCommand(), storeBackupCommand(), storeRepairCommand(), storeRestoreCommand())
	return cmd
}

func storeStatusCommand() *cobra.Command {
	var s storeFlags
	var out cli.Output
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the buckets of the durable state, and what is wrong with them",
		Example: `  weft store status
  weft store status --data-dir /var/lib/weft -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			store, done, err := s.open(cmd, false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			m, err := store.GetStore(cmd.Context(), &api.GetStoreRequest{})
			if err != nil {
				return err
			}
			return out.Print(cmd, m, func(t *cli.Table) {
				t.Row("BUCKET", "STATE", "LOST", "DAMAGE")
				for _, b := range m.Buckets {
					state := "whole"
					if b.Damage != "" {
						state = "damaged"
					}
					if b.ReadOnly {
						state = "read-only"
					}
					t.Row(b.Name, state, b.Lost, b.Damage)
				}
			})
		},
	}
	s.flags(cmd)
	out.Flag(cmd)
	return cmd
}

func storeBackupCommand() *cobra.Command {
	var s storeFlags
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the durable state into a file",
		Long: `Write the durable state into a file, bucket by bucket, while the controller runs.
The file holds secrets, such as the key of probes: only its owner can read it.
With the role admin.`,
		Example: `  weft store backup weft.backup
  weft store backup weft.backup --data-dir /var/lib/weft`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			draft, err := asowner.NewDraft(args[0], 0o600)
			if err != nil {
				return err
			}
			defer draft.Discard()
			store, done, err := s.open(cmd, false)
			if err != nil {
				return err
			}
			n, err := backup(cmd, store, draft)
			if err = errors.Join(err, done()); err == nil {
				err = draft.Commit()
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d entries\n", args[0], n)
			return nil
		},
	}
	s.flags(cmd)
	return cmd
}

// backup writes the store, and returns how many entries that were.
func backup(cmd *cobra.Command, store storeAccess, f io.Writer) (n int, err error) {
	status, err := store.GetStore(cmd.Context(), &api.GetStoreRequest{})
	if err != nil {
		return 0, err
	}
	w, err := newBackupWriter(f)
	if err != nil {
		return 0, err
	}
	for _, b := range status.Buckets {
		if b.Damage != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "weft: bucket %s is damaged, and the backup has what is left of it: %s\n", b.Name, b.Damage)
		}
		for after := ""; ; {
			part, err := store.ReadStore(cmd.Context(), &api.ReadStoreRequest{Bucket: b.Name, After: after})
			if err != nil {
				return 0, err
			}
			for _, e := range part.Entries {
				if err := w.add(b.Name, e); err != nil {
					return 0, err
				}
				after = e.Key
			}
			if !part.More {
				break
			}
		}
	}
	return w.entries, w.end()
}

func storeRepairCommand() *cobra.Command {
	var s storeFlags
	var from string
	var accept bool
	cmd := &cobra.Command{
		Use:   "repair [BUCKET…]",
		Short: "Repair damaged buckets, from a backup or by accepting the loss",
		Long: `Repair damaged buckets, all or those named. With --from, keys that a bucket has
lost come from a backup; what it still holds is newer, and stays. With
--accept-loss, what it holds now is taken for all of it. The services concerned
start again with that, and switches lose the entries that nobody wants any more.

A store that cannot be opened at all is repaired with --data-dir, while no
controller runs on it: its files are put aside.`,
		Example: `  weft store repair --from weft.backup
  weft store repair --accept-loss flowrules.flows
  weft store repair --data-dir /var/lib/weft --from weft.backup`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if (from == "") == !accept {
				return cli.Usagef(cmd, "give --from FILE or --accept-loss")
			}
			var buckets map[string][]*api.StoreEntry
			if from != "" {
				if buckets, err = readBackup(from); err != nil {
					return err
				}
			}
			store, done, err := s.open(cmd, true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			return repair(cmd, store, args, buckets)
		},
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&from, "from", "", "backup with what was lost")
	cmd.Flags().BoolVar(&accept, "accept-loss", false, "take what the buckets hold now for all of it")
	cmd.MarkFlagsMutuallyExclusive("from", "accept-loss")
	return cmd
}

// repairPart is how many octets of a backup are handed over at once.
const repairPart = 512 << 10

// repair repairs the damaged buckets among those named, or all.
func repair(cmd *cobra.Command, store storeAccess, names []string, buckets map[string][]*api.StoreEntry) error {
	status, err := store.GetStore(cmd.Context(), &api.GetStoreRequest{})
	if err != nil {
		return err
	}
	damaged := map[string]bool{}
	for _, b := range status.Buckets {
		if b.Damage != "" {
			damaged[b.Name] = true
		}
	}
	for _, name := range names {
		if !damaged[name] {
			return fmt.Errorf("bucket %q is not damaged; weft store status lists those that are", name)
		}
	}
	for _, b := range status.Buckets {
		if !damaged[b.Name] || len(names) > 0 && !slices.Contains(names, b.Name) {
			continue
		}
		filled := 0
		for rest := buckets[b.Name]; len(rest) > 0; {
			n, size := 0, 0
			for n < len(rest) && (n == 0 || size+len(rest[n].Value) < repairPart) {
				size += len(rest[n].Key) + len(rest[n].Value)
				n++
			}
			m, err := store.RepairStore(cmd.Context(), &api.RepairStoreRequest{Bucket: b.Name, Entries: rest[:n]})
			if err != nil {
				return err
			}
			filled += int(m.Filled)
			rest = rest[n:]
		}
		if _, err := store.RepairStore(cmd.Context(), &api.RepairStoreRequest{Bucket: b.Name, Accept: true}); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: repaired, %d of %d lost keys restored\n", b.Name, filled, b.Lost)
	}
	if len(damaged) == 0 {
		fmt.Fprintln(cmd.OutOrStdout(), "all buckets are whole")
	}
	return nil
}

func storeRestoreCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a data directory hold what a backup does",
		Long: `Make the store of a data directory hold what a backup does, and nothing else, but
for what is learnt again. No controller may run on the directory. When one
starts there, switches get what the backup has, and lose what it has not.`,
		Example: "  weft store restore weft.backup --data-dir /var/lib/weft",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			buckets, err := readBackup(args[0])
			if err != nil {
				return err
			}
			path, err := run.DataPath(dir)
			if err != nil {
				return err
			}
			if err := restore(context.Background(), path, buckets); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s holds what %s does\n", path, args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "data-dir", "", "directory of the durable state (default /var/lib/weft as root, else ~/.local/state/weft)")
	cmd.MarkFlagDirname("data-dir")
	return cmd
}
