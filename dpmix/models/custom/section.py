"""What a spec says of a model of the user's own, and what it goes with."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from dpmix.spec.capabilities import Capabilities, Unknown
from dpmix.spec.model_section import ModelSection
from dpmix.spec.table_source import FilePath


class CustomModel(ModelSection):
    """A model of the user's own; keys beside ``file`` go to it."""

    model_config = ConfigDict(extra="allow")
    samplers = ("data_augmentation", "soma")

    kind: Literal["custom"] = Field(description="The model.")
    file: FilePath = Field(description="Python file with the model, relative to the folder of the spec.")

    @classmethod
    def takes_release(cls, of: type[Capabilities]) -> bool:
        """Whether anything was done to the records: the model knows what."""
        return of.protects and of is not Unknown

    def in_words(self, spec: Any) -> str:
        """Name the file."""
        return f"the model of {self.file.name}"


SECTION = CustomModel
