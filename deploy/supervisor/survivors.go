package supervisor

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// Survivor is a process of an earlier supervisor that still runs.
type Survivor struct {
	Name string
	PID  int
	Args []string // of its command line, without the program
}

// Survivors returns the processes of a directory that an earlier supervisor has
// started, oldest first. New on the same directory adopts them.
func Survivors(directory string) ([]Survivor, error) {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	var list []Survivor
	for _, m := range listMarked(directory) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", m.pid))
		if err != nil || len(line) == 0 {
			continue // it has ended
		}
		s := Survivor{Name: m.name, PID: m.pid}
		for i, arg := range bytes.Split(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
			if i > 0 {
				s.Args = append(s.Args, string(arg))
			}
		}
		list = append(list, s)
	}
	return list, nil
}
