package testbed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// programs is where machines keep the programs that were copied to them, each in a
// directory of its SHA-256.
const programs = "/var/cache/weft"

// Scripts that machines run as root. Their arguments come as words, never as text of the script.
const (
	// look says what a machine has: $1 is the path of the program, $2 its SHA-256 or empty.
	look = `echo "machine $(uname -m)"
if command -v ovs-vswitchd >/dev/null && command -v ovsdb-server >/dev/null; then echo "ovs yes"; fi
if [ -x "$1" ]; then
	if [ -z "$2" ] || [ "$(sha256sum <"$1" | cut -d ' ' -f 1)" = "$2" ]; then echo "program yes"; fi
fi
echo end`
	// store keeps the program on standard input in directory $1, if $2 is its SHA-256.
	store = `set -eu
umask 022
mkdir -p "$1/$2"
new=$(mktemp "$1/$2/new.XXXXXX")
trap 'rm -f "$new"' EXIT
trap 'exit 1' HUP INT TERM
cat >"$new"
if [ "$(sha256sum <"$new" | cut -d ' ' -f 1)" != "$2" ]; then echo "the program did not arrive whole" >&2; exit 1; fi
chmod 755 "$new"
mv -f "$new" "$1/$2/weft"`
)

// program is the one that is copied to machines.
type program struct{ path, sum string }

func readProgram(path string) (*program, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, fmt.Errorf("read the program: %w", err)
	}
	return &program{path, hex.EncodeToString(h.Sum(nil))}, nil
}

// machines are the names that uname(1) has for what Go calls GOARCH.
var architectures = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// prepare finds out what a machine has, copies the program there if it lacks it, and
// returns the program's path there.
func (m *Machines) prepare(ctx context.Context, k *Machine, p *program, doing func(string)) (string, error) {
	path, sum := k.Weft, ""
	if path == "" {
		path, sum = programs+"/"+p.sum+"/weft", p.sum
	}
	doing("looking what it has")
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := m.run(short, k, nil, "sh", "-c", look, "weft", path, sum)
	if err != nil {
		return "", err
	}
	is := map[string]string{}
	for line := range strings.Lines(string(out)) {
		what, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		is[what] = value
	}
	_, whole := is["end"]
	want := architectures[runtime.GOARCH]
	switch {
	case !whole:
		return "", k.failed(fmt.Errorf("it answered %.60q: does the user have a shell there that prints nothing of its own?", out))
	case is["ovs"] == "":
		return "", k.failed(fmt.Errorf("it has no Open vSwitch: apt install openvswitch-switch"))
	case is["program"] != "":
		return path, nil
	case k.Weft != "":
		return "", k.failed(fmt.Errorf("it has no program %s: correct `weft:` in the resource file, or leave it out, and this program is copied", k.Weft))
	case want != "" && is["machine"] != want:
		return "", k.failed(fmt.Errorf("it is %.30q, and this program is for %s: put one for it there, and name it by `weft:` in the resource file", is["machine"], want))
	}
	doing("copying the program")
	f, err := os.Open(p.path)
	if err != nil {
		return "", fmt.Errorf("read the program: %w", err)
	}
	defer f.Close()
	long, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if _, err := m.run(long, k, f, "sh", "-c", store, "weft", programs, p.sum); err != nil {
		return "", fmt.Errorf("copy the program: %w", err)
	}
	return path, nil
}
