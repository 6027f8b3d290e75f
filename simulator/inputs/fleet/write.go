package fleet

import (
	"bufio"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Write prints the fleet as the Kubernetes objects that it is made of: Nodes, DeviceClasses and ResourceSlices, one
// YAML document each. The same fleet gives the same bytes, and Read makes the same fleet of them, but for its name,
// which is that of the file then.
func Write(out io.Writer, f Fleet) error {
	buffered := bufio.NewWriter(out)
	for i := range f.Nodes {
		if err := document(buffered, &f.Nodes[i]); err != nil {
			return fmt.Errorf("printing node %s: %w", f.Nodes[i].Name, err)
		}
	}
	for i := range f.Classes {
		if err := document(buffered, &f.Classes[i]); err != nil {
			return fmt.Errorf("printing class %s: %w", f.Classes[i].Name, err)
		}
	}
	for i := range f.Slices {
		if err := document(buffered, &f.Slices[i]); err != nil {
			return fmt.Errorf("printing slice %s: %w", f.Slices[i].Name, err)
		}
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("printing the fleet: %w", err)
	}
	return nil
}

func document(out *bufio.Writer, object any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding it: %w", err)
	}
	if _, err := out.WriteString("---\n"); err != nil {
		return fmt.Errorf("writing it: %w", err)
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("writing it: %w", err)
	}
	return nil
}
