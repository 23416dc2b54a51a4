package hydra

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft/plan/place"
)

// metisProgram is METIS's k-way partitioner (Karypis and Kumar, the paper's
// references 14 and 15), in Debian's package metis.
const metisProgram = "gpmetis"

// ErrNoMetis says that the partitioner is not installed.
var ErrNoMetis = errors.New(metisProgram + " is not installed (Debian package metis)")

// Metis places an instance with METIS: k-way, a constraint for CPU and one for
// memory, the best of so many partitionings. It knows nothing of the other
// constraints. The instance has servers that are all the same, and whole
// numbers as weights; the placement may break capacities.
func Metis(ctx context.Context, in *place.Instance, cuts int, seed uint64) ([]int, error) {
	program, err := exec.LookPath(metisProgram)
	if err != nil {
		return nil, ErrNoMetis
	}
	if len(in.Servers) == 1 {
		return make([]int, len(in.Shards)), nil
	}
	dir, err := os.MkdirTemp("", "weft-metis-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "graph")
	var b bytes.Buffer
	cpu, memory, err := writeMetis(&b, in)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-ptype=kway", fmt.Sprintf("-ncuts=%d", cuts), fmt.Sprintf("-seed=%d", seed%(1<<30)),
		fmt.Sprintf("-ubvec=%.4f %.4f", cpu, memory), file, strconv.Itoa(len(in.Servers)))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", metisProgram, err, bytes.TrimSpace(out))
	}
	return readMetis(fmt.Sprintf("%s.part.%d", file, len(in.Servers)), len(in.Shards), len(in.Servers))
}

// writeMetis writes the communication graph in METIS's format, and returns how
// much of the mean load a server may have of each constraint.
func writeMetis(w io.Writer, in *place.Instance) (cpu, memory float64, err error) {
	type neighbour struct {
		to     int
		weight int64
	}
	adjacent := make([]map[int]int64, len(in.Shards))
	add := func(a, b int, weight float64) error {
		if weight != math.Trunc(weight) || weight > 1<<30 {
			return fmt.Errorf("METIS takes whole numbers as weights, not %g", weight)
		}
		for _, x := range []neighbour{{a, int64(weight)}, {b, int64(weight)}} {
			if adjacent[x.to] == nil {
				adjacent[x.to] = map[int]int64{}
			}
			adjacent[x.to][a+b-x.to] += x.weight
		}
		return nil
	}
	for _, e := range in.Edges {
		if err := add(e.A, e.B, e.Weight); err != nil {
			return 0, 0, err
		}
	}
	for _, p := range in.Paths {
		for h := 1; h < len(p.Shards) && p.Weight > 0; h++ {
			if err := add(p.Shards[h-1], p.Shards[h], p.Weight); err != nil {
				return 0, 0, err
			}
		}
	}
	edges := 0
	for _, list := range adjacent {
		for _, weight := range list {
			if weight > 0 {
				edges++
			}
		}
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%d %d 011 2\n", len(in.Shards), edges/2)
	var totalCPU, totalMemory int64
	for i, s := range in.Shards {
		mem := s.Memory >> 20 // its weights are 32 bits
		totalCPU, totalMemory = totalCPU+s.CPU, totalMemory+mem
		fmt.Fprintf(out, "%d %d", s.CPU, mem)
		for to := range len(in.Shards) {
			if weight := adjacent[i][to]; weight > 0 {
				fmt.Fprintf(out, " %d %d", to+1, weight)
			}
		}
		_ = out.WriteByte('\n')
	}
	servers := float64(len(in.Servers))
	cpu = float64(in.Servers[0].CPU) * servers / float64(max(totalCPU, 1))
	memory = float64(in.Servers[0].Memory>>20) * servers / float64(max(totalMemory, 1))
	return max(cpu, 1.001), max(memory, 1.001), out.Flush()
}

// readMetis reads which server each shard is on.
func readMetis(file string, shards, servers int) ([]int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := strings.Fields(string(b))
	if len(lines) != shards {
		return nil, fmt.Errorf("%s placed %d shards of %d", metisProgram, len(lines), shards)
	}
	at := make([]int, shards)
	for i, line := range lines {
		if at[i], err = strconv.Atoi(line); err != nil || at[i] < 0 || at[i] >= servers {
			return nil, fmt.Errorf("%s placed shard %d on %q", metisProgram, i, line)
		}
	}
	return at, nil
}
