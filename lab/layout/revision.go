package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

func (s *Lab) Revision() (string, error) {
	b, err := json.Marshal(struct {
		Created int64
		*topology.Topology
	}{s.Created.UnixNano(), s.Topology})
	if err != nil {
		return "", fmt.Errorf("sum up lab %s: %w", s.Name, err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}

// CheckRevision returns an error if the lab has another revision than the one that a change
// was made from; empty: any.
func (s *Lab) CheckRevision(madeFrom string) error {
	is, err := s.Revision()
	if err != nil || madeFrom == "" || madeFrom == is {
		return err
	}
	return fmt.Errorf("lab %s has been changed meanwhile, such as on the command line: it has revision %s, and the file was made from %s; read it again, and change that", s.Name, is, madeFrom)
}

// TextFile is where the text is kept that a lab was made from: a lab that has been
// changed otherwise has none.
func (s *Lab) TextFile() (string, error) {
	r, err := s.Revision()
	return fmt.Sprintf("%s/file-%s.yaml", s.Dir(), r), err
}

// KeepText is KeepText; nil: the lab is made from none.
func (s *Lab) KeepText(text []byte) error {
	path, err := s.TextFile()
	if err != nil || text == nil {
		return err
	}
	before, err := filepath.Glob(filepath.Join(s.Dir(), "file-*.yaml"))
	if err != nil {
		return err
	}
	if err := machine.ReplaceFile(path, text, 0o600); err != nil {
		return fmt.Errorf("keep the file of lab %s: %w", s.Name, err)
	}
	for _, old := range before {
		if old != path {
			os.Remove(old)
		}
	}
	return nil
}
