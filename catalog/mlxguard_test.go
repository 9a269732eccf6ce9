package catalog

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// TestMLX_HostileFiles: files that declare more than there can be are broken models, or none, at once.
func TestMLX_HostileFiles(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 1<<20)
	headerOf := func(text string) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	}
	var tensors, shards strings.Builder
	for i := range maxTensors + 1 {
		fmt.Fprintf(&tensors, `,"%d":{}`, i)
	}
	for i := range 4096 + 1 {
		fmt.Fprintf(&shards, `,"%d":"model-%d.safetensors"`, i, i)
	}
	for name, tt := range map[string]struct {
		files files
		want  string // of the error; empty: there is no model
	}{
		"a header of many tensors":      {files{"model.safetensors": headerOf(`{"__metadata__":{"format":"mlx"}` + tensors.String() + `}`)}, "more than 65536 tensors"},
		"a header that is deep":         {files{"model.safetensors": headerOf(`{"a":` + deep)}, "can't be read"},
		"a header that is a list":       {files{"model.safetensors": headerOf(`[]`)}, "it is not an object"},
		"a header that is cut":          {files{"model.safetensors": headerOf(`{"a":{"dtype":"F16"`)}, "can't be read"},
		"a header beyond all limits":    {files{"model.safetensors": binary.LittleEndian.AppendUint64(nil, 1<<63)}, "is not a safetensors file"},
		"a header of odd values":        {files{"model.safetensors": headerOf(`{"a":{"dtype":7,"shape":"x"}}`)}, "can't be read"},
		"an index of many files":        {files{"model.safetensors.index.json": []byte(`{"weight_map":{"a":"model.safetensors"` + shards.String() + `}}`)}, "names more than 4096 files"},
		"an index that leads elsewhere": {files{"model.safetensors.index.json": []byte(`{"weight_map":{"a":"../../../secret.safetensors"}}`), "model.safetensors": headerOf(`[]`)}, "model.safetensors can't be read"},
		"a deep configuration":          {files{"config.json": []byte(`{"text_config":` + deep)}, ""},
		"a huge configuration":          {files{"config.json": []byte(`{"model_type":"` + strings.Repeat("x", 4<<20) + `"}`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, root := catalogOf(t, nil)
			setFormats(c, FormatMLX)
			for rel, content := range mlxModel(tt.files) {
				write(t, root, "a/b/"+rel, content)
			}
			switch all := models(t, c); {
			case tt.want == "" && len(all) > 0:
				t.Errorf("%+v", all)
			case tt.want != "" && (len(all) != 1 || all[0].Err == nil || !strings.Contains(all[0].Err.Error(), tt.want)):
				t.Errorf("%+v, want %q", all, tt.want)
			case tt.want != "" && strings.Contains(all[0].Err.Error(), root):
				t.Errorf("the error has a path: %v", all[0].Err)
			}
		})
	}
}
