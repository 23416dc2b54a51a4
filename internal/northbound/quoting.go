package northbound

import "github.com/weft-sdn/weft/internal/document"

// Shortened returns the text of an error with only a part of each quotation of a client's input.
func Shortened(text string) string { return document.Shortened(text) }
