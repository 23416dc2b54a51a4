package hosts

import (
	"sync"

	"github.com/weft-sdn/weft/object"
)

// shared is what a table and its parts have in common.
type shared struct {
	cfg     *Config // the table's own; mu guards what retune changes
	index   *index
	news    *announcer
	reached *object.Limits
	mu      *sync.Mutex // guards the state of table and parts, and changes of the index
}
