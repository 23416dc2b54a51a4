package command

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/bus"
)

// keptBucket is one that is not learnt again.
const keptBucket = "firewall.rules"

// keep makes the bucket of a data directory hold so many keys more.
func keep(t *testing.T, dir, prefix string, n int) {
	t.Helper()
	s, err := bus.Open(t.Context(), bus.Config{Directory: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := s.Bucket(t.Context(), keptBucket)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := b.Put(t.Context(), fmt.Sprint(prefix, i), []byte(strings.Repeat(prefix, 50))); err != nil {
			t.Fatal(err)
		}
	}
}

// kept returns the keys of the bucket of a data directory, and the damages.
func kept(t *testing.T, dir string) (keys map[string]string, damages []bus.Damage) {
	t.Helper()
	s, err := bus.Open(t.Context(), bus.Config{Directory: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b, err := s.Bucket(t.Context(), keptBucket)
	if err != nil {
		t.Fatal(err)
	}
	keys = map[string]string{}
	if err := b.All(t.Context(), func(key string, value []byte, _ uint64) error { keys[key] = string(value); return nil }); err != nil {
		t.Fatal(err)
	}
	return keys, s.Damages()
}

// TestStoreOffline backs up, restores and repairs the directory of a controller
// that does not run.
func TestStoreOffline(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	keep(t, data, "a", 30)
	before, _ := kept(t, data)
	if out := must(t, "store backup "+file+" --data-dir "+data); !strings.Contains(out, "30 entries") {
		t.Errorf("backup: %s", out)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a backup holds secrets: %v, %v", info, err)
	}
	same := func(what, dir string) {
		t.Helper()
		if now, damages := kept(t, dir); !maps.Equal(now, before) || len(damages) > 0 {
			t.Errorf("%s: %d keys, want %d; %v", what, len(now), len(before), damages)
		}
	}

	keep(t, data, "b", 10) // what has come since goes
	must(t, "store restore "+file+" --data-dir "+data)
	same("restored over what was there", data)
	fresh := filepath.Join(t.TempDir(), "fresh")
	must(t, "store restore "+file+" --data-dir "+fresh)
	same("restored into a new directory", fresh)
	must(t, "store restore "+file+" --data-dir "+fresh)
	same("restored again", fresh)

	blocks, _ := filepath.Glob(filepath.Join(data, "jetstream", "*", "streams", "KV_weft-firewall-rules", "msgs", "*.blk"))
	if len(blocks) == 0 {
		t.Fatal("the store has no files")
	}
	for _, block := range blocks {
		if err := os.Truncate(block, 500); err != nil {
			t.Fatal(err)
		}
	}
	if out := must(t, "store status --data-dir "+data); !strings.Contains(out, "read-only") {
		t.Errorf("status of a damaged store: %s", out)
	}
	if out := must(t, "store repair --from "+file+" --data-dir "+data); !strings.Contains(out, keptBucket+": repaired") {
		t.Errorf("repair: %s", out)
	}
	same("repaired", data)
	if out := must(t, "store repair --accept-loss --data-dir "+data); !strings.Contains(out, "whole") {
		t.Errorf("repair of a whole store: %s", out)
	}
	must(t, "store backup "+file+" --data-dir "+data) // over the one that is there

	s, err := bus.Open(t.Context(), bus.Config{Directory: data})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, line := range []string{"store restore " + file, "store backup " + file, "store repair --accept-loss"} {
		status, _, errs := weftCommand(strings.Fields(line + " --data-dir " + data)...)
		if status == 0 || !strings.Contains(errs, "is in use by process") {
			t.Errorf("weft %s beside a controller: status %d, %s", line, status, errs)
		}
	}
}

// TestStoreBadBackups checks that a file that is no backup, or not a whole one, is
// refused by name, and changes nothing.
func TestStoreBadBackups(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	keep(t, data, "a", 5)
	must(t, "store backup "+file+" --data-dir "+data)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	keep(t, data, "b", 5)
	before, _ := kept(t, data)
	flipped := []byte(string(good))
	flipped[len(flipped)/2] ^= 1
	lines := strings.SplitAfter(string(good), "\n")
	for name, text := range map[string]string{
		"empty": "", "something else": "name: a plan\n", "cut short": string(good[:len(good)/2]), "without its end": strings.Join(lines[:len(lines)-2], ""),
		"a line less": lines[0] + strings.Join(lines[2:], ""), "flipped": string(flipped), "only its head": lines[0],
	} {
		bad := writeFile(t, "bad", text)
		for _, line := range []string{"store restore ", "store repair --from "} {
			if status, _, errs := weftCommand(strings.Fields(line + bad + " --data-dir " + data)...); status == 0 || !strings.Contains(errs, bad) {
				t.Errorf("%s: weft %s: status %d, %s; want an error that names the file", name, line, status, errs)
			}
		}
	}
	if now, damages := kept(t, data); !maps.Equal(now, before) || len(damages) > 0 {
		t.Errorf("after bad backups: %d keys, want %d; %v", len(now), len(before), damages)
	}
}
