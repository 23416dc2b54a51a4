//go:build long && !soak

package test

const everyChange = false
